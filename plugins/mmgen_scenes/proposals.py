"""Boxes that a detector might propose: near the things of a scene and on the background; boxes shifted or random."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from mmgen_vl.boxes import Box, iou

from .world import Scene

NEAR_EACH = 2  # boxes near each target
SHAKE = 0.16  # standard deviation of an edge's shift, as a share of the box
SIDES = (0.1, 0.45)  # side of a square of the same area as a random box
ASPECTS = (0.5, 2.0)  # width over height of a random box
SAME = 0.5  # least intersection over union of a box that shows a thing
NOTHING = "background"

LabelledBox = tuple[Box, str]  # a box and the description of its content


def propose(scene: Scene, targets: Sequence[LabelledBox], count: int) -> tuple[list[Box], list[str]]:
    """`count` boxes of a scene and what each shows, in random order; the boxes of `targets` where `count` is 0. Two
    boxes are near each target, as far as `count` allows. The boxes are a function of the scene."""
    rng = Random(f"{scene.id}/{scene.look}")
    boxes = [box for box, _ in targets]
    if count:
        near = [jitter_box(rng, box) for _ in range(NEAR_EACH) for box in boxes][:count]
        boxes = [*near, *(random_box(rng) for _ in range(count - len(near)))]
    rng.shuffle(boxes)  # so that the order gives nothing away
    return boxes, _label_boxes(targets, boxes)


def jitter_box(rng: Random, box: Box) -> Box:
    """A box with each edge shifted a little, inside the picture."""
    x0, y0, x1, y1 = box
    width, height = x1 - x0, y1 - y0
    shifts = [rng.gauss(0, SHAKE) * side for side in (width, height, width, height)]
    left, top, right, bottom = (round(min(max(a + b, 0.0), 1.0), 4) for a, b in zip(box, shifts, strict=True))
    return (left, top, right, bottom) if right - left > width / 4 and bottom - top > height / 4 else box


def random_box(rng: Random) -> Box:
    """A box of random shape and place, inside the picture."""
    side, aspect = rng.uniform(*SIDES), math.exp(rng.uniform(*map(math.log, ASPECTS)))
    width, height = side * math.sqrt(aspect), side / math.sqrt(aspect)
    x, y = rng.uniform(0, 1 - width), rng.uniform(0, 1 - height)
    return round(x, 4), round(y, 4), round(x + width, 4), round(y + height, 4)


def _label_boxes(targets: Sequence[LabelledBox], boxes: Sequence[Box]) -> list[str]:
    """The description of the target that each box shows, or "background"."""
    overlaps = iou(boxes, [box for box, _ in targets])  # (N, M)
    return [targets[row.argmax()][1] if row.max() >= SAME else NOTHING for row in overlaps]
