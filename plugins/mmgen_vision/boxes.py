"""Boxes (x0, y0, x1, y1): overlap (IoU), union, from pixels to relative, from JSON, the best constant guess."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mmgen.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

# Boxes have 32-bit numbers, whose rounding changes an intersection over union by some millionths for objects of few
# pixels. A value equal to a threshold reaches the threshold.
SLACK = 1e-5
RIGHT = 0.5 - SLACK
Box = tuple[float, float, float, float]  # x0, y0, x1, y1, relative to the picture's size unless stated otherwise

WHOLE: Box = (0.0, 0.0, 1.0, 1.0)  # the whole picture
CANDIDATES = 1000  # maximum number of boxes tried as the constant prediction


def iou(first: ArrayLike, second: ArrayLike) -> np.ndarray:
    """(N, M) intersection over union of N boxes and M boxes; 0 for two empty boxes."""
    import numpy as np

    rows = np.asarray(first, np.float64).reshape(-1, 1, 4)
    columns = np.asarray(second, np.float64).reshape(1, -1, 4)
    low, high = np.maximum(rows[..., :2], columns[..., :2]), np.minimum(rows[..., 2:], columns[..., 2:])
    shared = (high - low).clip(0).prod(-1)
    total_area = _area(rows) + _area(columns) - shared
    return np.divide(shared, total_area, out=np.zeros_like(shared), where=total_area > 0)


def _area(boxes: np.ndarray) -> np.ndarray:
    return (boxes[..., 2:] - boxes[..., :2]).clip(0).prod(-1)


def box_array(values: object, where: str) -> np.ndarray:
    """Convert boxes from JSON to an array (N, 4). Raises DataError that starts with `where`, their source."""
    import numpy as np

    try:
        boxes = np.array(values, np.float64).reshape(-1, 4)
    except (TypeError, ValueError, OverflowError):
        boxes = np.full((1, 4), np.nan)
    if not np.isfinite(boxes).all():
        raise DataError(
            f"{where}: a box must be four numbers, [x0, y0, x1, y1], relative to the picture's size, not {values!r:.60}"
        )
    return boxes


def most_often_right(boxes: Sequence[Sequence[float]]) -> list[float]:
    """The best constant prediction: 100 or 0 for every box, whether the box that is right most often is right there. Of
    many boxes, an evenly spaced subset is tried."""
    import numpy as np

    truths = np.array(boxes, np.float64).reshape(-1, 4)
    candidates = truths[:: -(-len(truths) // CANDIDATES)]
    hits = max((iou(candidate, truths)[0] >= RIGHT for candidate in candidates), key=np.count_nonzero)
    return [100.0 * bool(hit) for hit in hits]


def relative(box: Sequence[float], width: float, height: float) -> Box | None:
    """Convert a box from pixels to relative coordinates, clipped to the picture; None if the box is empty then."""
    x0, y0, x1, y1 = (min(max(value / size, 0.0), 1.0) for value, size in zip(box, (width, height) * 2, strict=True))
    return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


def union(boxes: Sequence[Box]) -> Box:
    """The smallest box around all of them."""
    return min(b[0] for b in boxes), min(b[1] for b in boxes), max(b[2] for b in boxes), max(b[3] for b in boxes)


def cells(rows: int, columns: int, inside: Box = WHOLE) -> list[Box]:
    """The boxes of rows x columns equal parts of a box, row by row."""
    x0, y0, x1, y1 = inside

    def corner(x: int, y: int) -> tuple[float, float]:
        return x0 + (x1 - x0) * x / columns, y0 + (y1 - y0) * y / rows

    return [(*corner(x, y), *corner(x + 1, y + 1)) for y in range(rows) for x in range(columns)]
