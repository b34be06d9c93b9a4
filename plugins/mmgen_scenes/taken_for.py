"""What a detector might take the things of a scene for: the right kind, and kinds that look like it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from random import Random

import numpy as np

from mmgen.features.classes import TOP, Classes

from .world import KINDS, SORT, Kind, Scene

SURE = (0.55, 0.95)  # what the right kind gets
NEAR = 0.5  # how far apart kinds are for one to be taken for the other 1/e times as often
SHAKEN = 0.5  # by how much a detector is more or less inclined to a kind, in this region: a deviation, of logarithms
SINGULAR = {kind.plural: kind.name for kind in KINDS.values()}


def taken_for(scene: Scene, labels: Sequence[str]) -> Classes:
    """Distributions over the kinds for boxes of these labels ("red car", "blue cats"); where a label names no kind,
    nothing is known. They are a function of the scene and the labels."""
    rng = Random(f"{scene.id}/{scene.look}/taken for")
    names = tuple(KINDS)
    chances = np.zeros((len(labels), len(names)))
    for row, label in zip(chances, labels, strict=True):
        last = label.rpartition(" ")[2]
        if (kind := SINGULAR.get(last, last)) in KINDS:
            sure = rng.uniform(*SURE)
            others = [near * math.exp(rng.gauss(0, SHAKEN)) for near in _likeness(kind)]
            row[:] = [(1 - sure) * other / sum(others) for other in others]
            row[names.index(kind)] = sure
    told = Classes.surest(names, chances, TOP)
    told.ids[told.probabilities == 0] = -1
    return told


@cache
def _likeness(name: str) -> tuple[float, ...]:
    """How much every kind looks like this one; it is no other kind itself."""
    return tuple(0.0 if other == name else math.exp(-_apart(KINDS[name], KINDS[other]) / NEAR) for other in KINDS)


def _apart(one: Kind, other: Kind) -> float:
    """Kinds look alike that are of one sort, in one place, and of like shape and size."""
    shape = abs(math.log(one.aspect / other.aspect)) + abs(math.log(one.scale / other.scale))
    return shape + 0.5 * (one.zone != other.zone) + 0.5 * (SORT[one.name] != SORT[other.name])
