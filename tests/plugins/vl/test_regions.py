"""Correct regions, and candidate regions."""

import random

import pytest
import torch
from mmgen_tasks import BoxAccuracy
from mmgen_vl.regions import plain, right

from mmgen.tensors import Example, Prediction

pytestmark = pytest.mark.slow


def test_an_overlap_of_half_is_right_in_pixels_in_training_and_in_scoring():
    rng = random.Random(0)
    pixels = [(rng.randint(200, 640), rng.randint(200, 640), rng.randint(4, 90), rng.randint(4, 90)) for _ in range(50)]
    right_boxes = [(9 / w, 7 / h, (9 + 2 * a) / w, (7 + b) / h) for w, h, a, b in pixels]
    half = torch.tensor([(9 / w, 7 / h, (9 + a) / w, (7 + b) / h) for w, h, a, b in pixels])  # in a store's precision
    less = torch.tensor([(9 / w, 7 / h, (8 + a) / w, (7 + b) / h) for w, h, a, b in pixels])
    for labels, predicted_boxes, expected in [(right_boxes, half, True), (right_boxes, less, False)]:
        targets = [
            bool(right(box.unsqueeze(0), label, "e")) for box, label in zip(predicted_boxes, labels, strict=True)
        ]
        examples_used = [Example(str(i), {}, (), {}, {"box": box}) for i, box in enumerate(labels)]
        predicted = [Prediction(str(i), {"box": box, "index": 0}, 1.0) for i, box in enumerate(plain(predicted_boxes))]
        accuracy = BoxAccuracy().build().score(predicted, examples_used).per_example["accuracy"]
        assert targets == [expected] * len(labels) and accuracy == [100.0 * expected] * len(labels)
