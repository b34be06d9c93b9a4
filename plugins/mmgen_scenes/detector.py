"""What a detector might say about a scene: boxes near its things and elsewhere, and classes of what the boxes show.

Everything is a function of the scene.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from random import Random

import numpy as np
from mmgen_vision.boxes import Box, iou

from mmgen.features.classes import TOP, Classes

from .world import KINDS, PLURAL, SORT, Kind, Scene

NEAR_EACH = 2  # boxes near each target
SHAKE = 0.16  # standard deviation of an edge's shift, as a share of the box
SIDES = (0.1, 0.45)  # side of a square of the same area as a random box
ASPECTS = (0.5, 2.0)  # width over height of a random box
SAME = 0.5  # least intersection over union of a box that shows a thing
NOTHING = "background"

SURE = (0.55, 0.95)  # probability of the right kind
NEAR = 0.5  # distance of two kinds at which one is predicted for the other 1/e times as often
SHAKEN = 0.5  # standard deviation of a kind's log probability from one box to another

LabelledBox = tuple[Box, str]  # a box and the description of its content


def propose(scene: Scene, targets: Sequence[LabelledBox], count: int) -> tuple[list[Box], list[str]]:
    """`count` boxes of a scene and what each shows, in random order; the boxes of `targets` where `count` is 0. Two
    boxes are near each target, as far as `count` allows."""
    rng = Random(f"{scene.id}/{scene.look}")
    boxes = [box for box, _ in targets]
    if count:
        near = [_jitter(rng, box) for _ in range(NEAR_EACH) for box in boxes][:count]
        boxes = [*near, *(_random_box(rng) for _ in range(count - len(near)))]
    rng.shuffle(boxes)  # so that the order gives nothing away
    overlaps = iou(boxes, [box for box, _ in targets])  # (N, M)
    return boxes, [targets[row.argmax()][1] if row.max() >= SAME else NOTHING for row in overlaps]


def detector_classes(scene: Scene, region_names: Sequence[str]) -> Classes:
    """Distributions over the kinds, with the right and similar kinds, for boxes with these names ("red car", "blue
    cats"); without a distribution for a name without a kind."""
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


def _jitter(rng: Random, box: Box) -> Box:
    """A box with each edge shifted a little, inside the picture."""
    x0, y0, x1, y1 = box
    width, height = x1 - x0, y1 - y0
    shifts = [rng.gauss(0, SHAKE) * side for side in (width, height, width, height)]
    left, top, right, bottom = (round(min(max(a + b, 0.0), 1.0), 4) for a, b in zip(box, shifts, strict=True))
    return (left, top, right, bottom) if right - left > width / 4 and bottom - top > height / 4 else box


def _random_box(rng: Random) -> Box:
    """A box of random shape and place, inside the picture."""
    side, aspect = rng.uniform(*SIDES), math.exp(rng.uniform(*map(math.log, ASPECTS)))
    width, height = side * math.sqrt(aspect), side / math.sqrt(aspect)
    x, y = rng.uniform(0, 1 - width), rng.uniform(0, 1 - height)
    return round(x, 4), round(y, 4), round(x + width, 4), round(y + height, 4)


@cache
def _likeness_to_kinds(name: str) -> tuple[float, ...]:
    """How much every kind looks like this kind; 0 for the kind itself."""
    return tuple(0.0 if kind == name else math.exp(-_kind_distance(KINDS[name], KINDS[kind]) / NEAR) for kind in KINDS)


def _kind_distance(first: Kind, second: Kind) -> float:
    """The distance of two kinds: small for kinds of one sort, in one zone, of similar shape and size."""
    shape = abs(math.log(first.aspect / second.aspect)) + abs(math.log(first.scale / second.scale))
    return shape + 0.5 * (first.zone != second.zone) + 0.5 * (SORT[first.name] != SORT[second.name])
