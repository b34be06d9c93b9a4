"""Boxes as a detector might find them: near the things of a scene, and where nothing is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from mmgen_vl.boxes import Box, iou

from .world import Scene

NEAR_EACH = 2  # boxes near each that may be asked for
SHAKE = 0.16  # how far an edge is moved, as a share of the box: the deviation
SIDES = (0.1, 0.45)  # of the square as large as a box that lies anywhere
ASPECTS = (0.5, 2.0)  # its width over its height
SAME = 0.5  # intersection over union from which a box shows a thing
NOTHING = "background"

Shown = tuple[Box, str]  # a box and what is in it


def propose(scene: Scene, wanted: Sequence[Shown], count: int) -> tuple[list[Box], list[str]]:
    """`count` boxes of a scene and what each shows, in no order; the `wanted` ones themselves where `count` is 0. Near
    each of `wanted` there are two, as many as there is room for. They are a function of the scene."""
    rng = Random(f"{scene.id}/{scene.look}")
    boxes = [box for box, _ in wanted]
    if count:
        near = [shaken(rng, box) for _ in range(NEAR_EACH) for box in boxes][:count]
        boxes = [*near, *(anywhere(rng) for _ in range(count - len(near)))]
    rng.shuffle(boxes)  # their order tells nothing
    return boxes, _shown(wanted, boxes)


def shaken(rng: Random, box: Box) -> Box:
    """A box with each edge moved a little; inside the picture."""
    x0, y0, x1, y1 = box
    width, height = x1 - x0, y1 - y0
    moved = [rng.gauss(0, SHAKE) * side for side in (width, height, width, height)]
    left, top, right, bottom = (round(min(max(a + b, 0.0), 1.0), 4) for a, b in zip(box, moved, strict=True))
    return (left, top, right, bottom) if right - left > width / 4 and bottom - top > height / 4 else box


def anywhere(rng: Random) -> Box:
    """A box of any shape and place, inside the picture."""
    side, aspect = rng.uniform(*SIDES), math.exp(rng.uniform(*map(math.log, ASPECTS)))
    width, height = side * math.sqrt(aspect), side / math.sqrt(aspect)
    x, y = rng.uniform(0, 1 - width), rng.uniform(0, 1 - height)
    return round(x, 4), round(y, 4), round(x + width, 4), round(y + height, 4)


def _shown(wanted: Sequence[Shown], boxes: Sequence[Box]) -> list[str]:
    """Which of `wanted` each box shows."""
    overlaps = iou(boxes, [box for box, _ in wanted])  # (N, M)
    return [wanted[row.argmax()][1] if row.max() >= SAME else NOTHING for row in overlaps]
