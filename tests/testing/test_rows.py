"""Rows that the suite of backbones builds: padding, and targets behind their input."""

import pytest

from mmgen.tensors import MASK, PAD, WRITTEN
from mmgen.testing import TEXTS
from mmgen.testing.rows import behind, pick, prefix, some_ids
from mmgen.testing.tiny import Tiny


@pytest.fixture(scope="module")
def backbone():
    return Tiny().build(TEXTS)


def test_ids_are_different_words(backbone):
    ids = some_ids(backbone, 5)
    assert len({*ids}) == 5
    assert not {*ids} & {backbone.start_id, backbone.end_id, backbone.mask_id, backbone.pad_id}
    with pytest.raises(AssertionError, match="encode_text returns only [0-9]+ different tokens for the suite's texts"):
        some_ids(backbone, 10_000)


def test_inputs_are_padded_on_the_right(backbone):
    rows = prefix(backbone, [[5, 6, 7], [5]], width=4)
    assert rows.layout.real.tolist() == [[True, True, True, False], [True, False, False, False]]
    assert rows.positions.tolist() == [[0, 1, 2, 2], [0, 0, 0, 0]]
    assert pick(rows, [1, 1]).layout.real.tolist() == [[True, False, False, False]] * 2


def test_targets_stand_behind_their_input(backbone):
    before = prefix(backbone, [[5, 6], [5]])
    rows = behind(backbone, before, [[[7, 8]], [[7], [8]]])
    assert rows.layout.role.tolist() == [[WRITTEN, MASK, MASK], [MASK, MASK, PAD]]
    assert rows.layout.group.tolist() == [[1, 1, 1], [1, 2, 0]]
    assert rows.positions[0].tolist() == [2, 2, 3] and rows.positions[1, :2].tolist() == [1, 1]
    one_step = behind(backbone, before, [[[7, 8]], [[7, 8]]], steps=(2, 1))
    assert one_step.layout.role.tolist() == [[WRITTEN, MASK], [MASK, PAD]]
