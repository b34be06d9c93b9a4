"""Boxes, in words and overlapping; regions that classes and heads are about."""

import random

import pytest
import torch
from mmgen_tasks import BoxAccuracy
from mmgen_vision.box_words import all_words, box_in_words
from mmgen_vision.boxes import iou
from mmgen_vision.heads import published_head, region_layers
from mmgen_vision.regions import plain, right
from torch import nn

from mmgen.errors import DataError
from mmgen.examples import Example, Prediction


@pytest.mark.slow
def test_an_overlap_of_half_is_right_in_pixels_in_training_and_in_scoring():
    rng = random.Random(0)
    for _ in range(50):
        w, h, a, b = rng.randint(200, 640), rng.randint(200, 640), rng.randint(4, 90), rng.randint(4, 90)
        label = (9 / w, 7 / h, (9 + 2 * a) / w, (7 + b) / h)
        for width, expected in ((a, True), (a - 1, False)):
            box = torch.tensor([(9 / w, 7 / h, (9 + width) / w, (7 + b) / h)])  # in a store's precision
            predicted = Prediction("a", {"box": plain(box)[0], "index": 0}, 1.0)
            scores = BoxAccuracy().build().score([predicted], [Example("a", {}, labels={"box": label})])
            assert bool(right(box, label, "e")) == expected and scores.values["accuracy"] == 100 * expected


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


def test_a_box_in_tenths():
    assert box_in_words([0.0, 0.26, 0.999, 1.0]) == "left0 top2 right9 bottom9"
    assert box_in_words([-0.2, 0.5, 0.1, 1.5]) == "left0 top5 right1 bottom9"
    assert len({*all_words()}) == 40


def test_a_head_of_any_name_is_taken_and_that_of_another_task_is_ignored():
    for name in ("cls", "classifier", "bert.classifier"):
        weights = {f"{name}.weight": torch.ones(2, 4), f"{name}.bias": torch.zeros(2)}
        assert published_head(weights, nn.Linear(4, 2), "answers").keys() == {"answers.weight", "answers.bias"}
    assert published_head({"cls.weight": torch.ones(3, 4), "cls.bias": torch.zeros(3)}, nn.Linear(4, 2)) == {}
    with pytest.raises(
        DataError, match="^the head is only half there: 'cls.bias' is missing, but 'cls.weight' is not; "
    ):
        published_head({"cls.weight": torch.ones(2, 4)}, nn.Linear(4, 2))


def test_layers_begin_as_in_bert():
    torch.manual_seed(0)
    dense, logits = region_layers(64, 9)
    assert dense.weight.shape == (64, 64) and logits.weight.shape == (9, 64)
    assert abs(dense.weight.std().item() - 0.02) < 0.002 and not dense.bias.any() and not logits.bias.any()
