"""Workloads: slots of rows, counted by hand."""

import pytest
from mmgen_bench.flops import BERT2BERT, CAUSAL, NAIVE, OURS, Shape, generation_work, training_work

pytestmark = pytest.mark.slow


def test_slots_are_those_counted_by_hand():
    base = Shape()
    assert base.prefix == 54
    assert [training_work(base, OURS, k, 9).slots for k in (1, 3, 5)] == [71, 35, pytest.approx(27.8)]
    assert training_work(base, NAIVE, 1, 9).slots == sum(54 + t for t in range(1, 10))
    assert (training_work(base, BERT2BERT, 1, 9).slots, training_work(base, CAUSAL, 1, 9).slots) == (63, 62)
    assert generation_work(base, OURS, 1, 20).slots == 54 + 1 + 2 * 19
    assert generation_work(base, BERT2BERT, 4, 20).slots == 54 / 4 + 20
    assert generation_work(base, NAIVE, 4, 20).slots == generation_work(base, NAIVE, 1, 20).slots
