"""Multiply-adds, counted by hand."""

import pytest
from mmgen_bench.flops import CAUSAL, OURS, Shape, generation_work, training_work

pytestmark = pytest.mark.slow


def test_multiply_adds_of_a_layer_and_a_head_by_hand():
    one_layer = Shape(layers=1, width=10, vocabulary=100, regions=1, features=6, caption=1)  # 4 prefix slots
    row, head, front = 4 + 3, 10 * 10 + 10 * 100, 10 * 10
    assert training_work(one_layer, CAUSAL, 1, 2).multiply_adds == front + 12 * 100 * 5 + 2 * 10 * 5 * 5 + 2 * head
    last = 2 * 100 * row + 2 * (12 * 100 + 2 * 10 * row)  # keys and values of all, then two predicted slots
    assert training_work(one_layer, OURS, 1, 2).multiply_adds == front + last + 2 * head
    two_layers = Shape(layers=2, width=10, vocabulary=100, regions=1, features=6, caption=1)
    assert (
        training_work(two_layers, OURS, 1, 2).multiply_adds
        == front + 12 * 100 * row + 2 * 10 * row * row + last + 2 * head
    )
    step = 2 * (12 * 100 + 2 * 10 * 10) + 2 * 100 * 2 + 12 * 100 + 2 * 10 * 10  # two slots look at X and 3 texts of 2
    read = 5 * (12 * 100 + 2 * 10 * 5) + 2 * 100 * 5 + 12 * 100 + 2 * 10 * 5
    assert generation_work(two_layers, OURS, 3, 2).multiply_adds == pytest.approx(
        (front + read + head) / 3 + step + head
    )
