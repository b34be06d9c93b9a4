"""Boxes: intersection over union, against counted cells."""

import random

import pytest
from mmgen_vl.boxes import iou


def test_intersection_over_union_is_that_of_cells():
    """Boxes on a grid of 12 cells, counted."""
    draw = random.Random(1)

    def cells(box):
        return {(x, y) for x in range(box[0], box[2]) for y in range(box[1], box[3])}

    for _ in range(100):
        first, second = (
            [*(min(a, b) for a, b in sides), *(max(a, b) for a, b in sides)]
            for sides in ([[draw.randint(0, 12), draw.randint(0, 12)] for _ in range(2)] for _ in range(2))
        )
        union = len(cells(first) | cells(second))
        expected = len(cells(first) & cells(second)) / union if union else 0
        assert iou([value / 12 for value in first], [value / 12 for value in second])[0, 0] == pytest.approx(expected)
