"""Which regions are predicted, and which of those are masked."""

import random

import numpy as np
import pytest
import torch

from mmgen.errors import DataError
from mmgen.features.classes import Classes
from mmgen.features.hiding import hide_regions
from mmgen.tensors import Hiding

NAMES = ("cat", "dog")


def classes(count):
    """Regions that are a cat and a dog in turn; the last has no known class."""
    ids = np.array([[place % 2] for place in range(count - 1)] + [[-1]], np.int32)
    return Classes(NAMES, ids, np.where(ids >= 0, 1.0, 0.0).astype(np.float32))


@pytest.mark.parametrize(("rate", "masked"), [(0.0, 1.0), (0.5, 1.0), (1.0, 0.5), (1.0, 1.0)])
def test_regions_are_drawn_at_the_rates(rate, masked):
    hidden, labels = hide_regions(classes(400), 400, NAMES, random.Random(0), Hiding(rate, (masked, 0.0)))
    predicted = (labels != -100).all(1)
    assert not predicted[-1]  # without a known class
    assert abs(predicted.float().mean().item() - rate) < 0.08
    assert set(np.flatnonzero(hidden)) <= set(predicted.nonzero().flatten().tolist())
    assert abs(hidden.mean() - rate * masked) < 0.08
    for place in predicted.nonzero().flatten().tolist():
        assert labels[place].tolist() == [1 - place % 2, place % 2]


def test_equal_draws_hide_equal_regions():
    tries = [hide_regions(classes(9), 9, NAMES, random.Random(3), Hiding(0.5, (0.8, 0.0))) for _ in range(2)]
    assert (tries[0][0] == tries[1][0]).all() and torch.equal(tries[0][1], tries[1][1])


def test_without_classes_nothing_is_predicted():
    hidden, labels = hide_regions(None, 3, NAMES, random.Random(0), Hiding(1.0, (1.0, 0.0)))
    assert not hidden.any() and (labels == -100).all() and labels.shape == (3, 2)


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        ((), "cannot mask regions to predict their classes, because the features have no classes"),
        (("cat",), "the 2 class names of the regions differ from the 1 that are predicted"),
    ],
)
def test_other_class_names(names, problem):
    with pytest.raises(DataError) as error:
        hide_regions(classes(3), 3, names, random.Random(0), Hiding(1.0, (1.0, 0.0)))
    assert str(error.value) == problem
