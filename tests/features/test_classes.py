"""Classes of regions: made into distributions; which regions are predicted, and which of those are masked."""

import random

import numpy as np
import pytest
from kit.stores import NAMES

from mmgen.features.classes import Classes, hide_regions
from mmgen.tensors import Hiding

ANIMALS = ("cat", "dog")


def test_the_surest_come_first_and_are_made_a_distribution():
    top = Classes.surest(NAMES, np.array([[0.1, 0.5, 0.0, 0.2], [0.0, 0.0, 1.0, 0.0]]), 2)
    assert top.ids.tolist() == [[1, 3], [2, 0]]
    assert np.allclose(top.distributions(), [[0, 5 / 7, 0, 2 / 7], [0, 0, 1, 0]])
    first = top.behind_unknown()
    assert first.known.tolist() == [False, True, True] and not first.distributions()[0].any()


def animals(count):
    """Regions that are a cat and a dog in turn; the last has no known class."""
    ids = np.array([[place % 2] for place in range(count - 1)] + [[-1]], np.int32)
    return Classes(ANIMALS, ids, np.where(ids >= 0, 1.0, 0.0).astype(np.float32))


@pytest.mark.parametrize(("rate", "masked"), [(0.0, 1.0), (0.5, 1.0), (1.0, 0.5), (1.0, 1.0)])
def test_regions_are_drawn_at_the_rates(rate, masked):
    hidden, labels = hide_regions(animals(400), 400, ANIMALS, random.Random(0), Hiding(rate, (masked, 0.0)))
    predicted = (labels != -100).all(1)
    assert not predicted[-1]  # without a known class
    assert abs(predicted.float().mean().item() - rate) < 0.08
    assert set(np.flatnonzero(hidden)) <= set(predicted.nonzero().flatten().tolist())
    assert abs(hidden.mean() - rate * masked) < 0.08
    for place in predicted.nonzero().flatten().tolist():
        assert labels[place].tolist() == [1 - place % 2, place % 2]
