"""Boxes, (x0, y0, x1, y1): how far they agree, and from pixels to shares of the picture's size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mmgen.errors import DataError

# An intersection over union of exactly 0.5 is right. Boxes are kept with 32 bits: of things of few pixels that moves it
# by some millionths.
RIGHT = 0.5 - 1e-5
Box = tuple[float, float, float, float]  # x0, y0, x1, y1, relative to the picture unless something else is said

CANDIDATES = 1000  # boxes of which the one that is right most often is looked for


def iou(first: ArrayLike, second: ArrayLike) -> np.ndarray:
    """(N, M) intersection over union of N boxes and M others; 0 where both are empty."""
    rows = np.asarray(first, np.float64).reshape(-1, 1, 4)
    columns = np.asarray(second, np.float64).reshape(1, -1, 4)
    low, high = np.maximum(rows[..., :2], columns[..., :2]), np.minimum(rows[..., 2:], columns[..., 2:])
    shared = (high - low).clip(0).prod(-1)
    total_area = _area(rows) + _area(columns) - shared
    return np.divide(shared, total_area, out=np.zeros_like(shared), where=total_area > 0)


def _area(boxes: np.ndarray) -> np.ndarray:
    return (boxes[..., 2:] - boxes[..., :2]).clip(0).prod(-1)


def box_array(values: object, where: str) -> np.ndarray:
    """(N, 4) boxes out of JSON. Raises DataError that names `where` they are from."""
    try:
        boxes = np.array(values, np.float64).reshape(-1, 4)
    except (TypeError, ValueError, OverflowError):
        boxes = np.full((1, 4), np.nan)
    if not np.isfinite(boxes).all():
        raise DataError(
            f"{where}: a box is four numbers, [x0, y0, x1, y1], relative to the picture's size; it has {values!r:.60}"
        )
    return boxes


def most_often_right(boxes: Sequence[Sequence[float]]) -> list[float]:
    """For every box 100 or 0: whether that one of them is right about it which is right about most. Of very many boxes
    some are tried, evenly spread."""
    every = np.array(boxes, np.float64).reshape(-1, 4)
    tried = every[:: -(-len(every) // CANDIDATES)]
    hits = max((iou(candidate, every)[0] >= RIGHT for candidate in tried), key=np.count_nonzero)
    return [100.0 * bool(hit) for hit in hits]


def relative(box: Sequence[float], width: float, height: float) -> Box | None:
    """A box in pixels, (x0, y0, x1, y1), relative to the picture's size and cut to it; None where nothing is left."""
    x0, y0, x1, y1 = (min(max(value / size, 0.0), 1.0) for value, size in zip(box, (width, height) * 2, strict=True))
    return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


def union(boxes: Sequence[Box]) -> Box:
    """The smallest box around all of them."""
    return min(b[0] for b in boxes), min(b[1] for b in boxes), max(b[2] for b in boxes), max(b[3] for b in boxes)
