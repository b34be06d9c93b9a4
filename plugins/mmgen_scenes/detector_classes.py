"""Class probabilities that a detector might give to the things of a scene: the right kind, and similar kinds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from random import Random

import numpy as np

from mmgen.features.classes import TOP, Classes

from .world import KINDS, PLURAL, SORT, Kind, Scene

SURE = (0.55, 0.95)  # probability of the right kind
NEAR = 0.5  # distance of two kinds at which one is predicted for the other 1/e times as often
SHAKEN = 0.5  # standard deviation of a kind's log probability from one box to another


def detector_classes(scene: Scene, region_names: Sequence[str]) -> Classes:
    """Distributions over the kinds for boxes with these names ("red car", "blue cats"); without a distribution for
    a name without a kind. A function of the scene and the names."""
    rng = Random(f"{scene.id}/{scene.look}/taken for")
    names = tuple(KINDS)
    chances = np.zeros((len(region_names), len(names)))
    for row, region_name in zip(chances, region_names, strict=True):
        noun = region_name.rpartition(" ")[2]
        if (kind := PLURAL.get(noun, noun)) in KINDS:
            share = rng.uniform(*SURE)
            similarities = [near * math.exp(rng.gauss(0, SHAKEN)) for near in _likeness_to_kinds(kind)]
            row[:] = [(1 - share) * similarity / sum(similarities) for similarity in similarities]
            row[names.index(kind)] = share
    classes = Classes.surest(names, chances, TOP)
    classes.ids[classes.probabilities == 0] = -1
    return classes


@cache
def _likeness_to_kinds(name: str) -> tuple[float, ...]:
    """How much every kind looks like this kind; 0 for the kind itself."""
    return tuple(0.0 if kind == name else math.exp(-_kind_distance(KINDS[name], KINDS[kind]) / NEAR) for kind in KINDS)


def _kind_distance(first: Kind, second: Kind) -> float:
    """The distance of two kinds: small for kinds of one sort, in one zone, of similar shape and size."""
    shape = abs(math.log(first.aspect / second.aspect)) + abs(math.log(first.scale / second.scale))
    return shape + 0.5 * (first.zone != second.zone) + 0.5 * (SORT[first.name] != SORT[second.name])
