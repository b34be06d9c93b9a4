"""Two pictures in two rows, and the head over both."""

import pytest
import torch
from mmgen_tasks.nlvr2.two_rows import joined, pair_head, row_per_picture

from mmgen.errors import DataError
from mmgen.tensors import All, Example


def test_a_row_for_each_picture():
    example = Example("e", {"image": All(("left", "right")), "statement": "both are red"})
    rows = row_per_picture(example, "image")
    assert [dict(row.inputs) for row in rows] == [
        {"image": "left", "statement": "both are red"},
        {"image": "right", "statement": "both are red"},
    ]


@pytest.mark.parametrize("pictures", ["one", All(("one",)), All(("one", "two", "three")), None])
def test_another_number_of_pictures(pictures):
    with pytest.raises(DataError) as error:
        row_per_picture(Example("e", {"image": pictures}), "image")
    assert str(error.value) == (
        "example 'e': arrangement = \"rows\" needs two pictures in 'image'; give two, or set arrangement = \"row\""
    )


def test_states_of_an_example_are_side_by_side():
    pooled = torch.arange(8.0).reshape(4, 2)  # two examples of two rows
    assert joined(pooled).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert pair_head(2, 3)(joined(pooled)).shape == (2, 3)
