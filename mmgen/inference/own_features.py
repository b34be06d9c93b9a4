"""Features, boxes and labels that a query brings along, checked as those of a store are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..parts import Picture, Record

ROUNDING = 1e-4  # boxes may reach outside the picture by so much, as in a store
BOXES = "write boxes as rows of x0, y0, x1, y1, each a share of the picture from 0 to 1, like [[0, 0, 0.5, 1]]"


def record(key: str, value: Mapping[str, Any]) -> Record:
    """Own features out of JSON. Raises ValueError."""
    if unknown := [name for name in value if name not in ("features", "boxes", "labels")]:
        raise ValueError(f'"{unknown[0]}" is not known; there are picture, features, boxes and labels')
    if "features" not in value:
        raise ValueError('it has neither "picture" nor "features"')
    labels = value.get("labels")
    return checked_record(Record(key, value["features"], value.get("boxes"), labels))


def checked_record(found: Record) -> Record:
    """The record, its boxes within the picture. Raises ValueError."""
    features = _numbers(found.features)
    if features is None or features.ndim != 2:
        raise ValueError(f"features must be rows of numbers, a row a region, not {_shown(found.features)}")
    if not np.isfinite(features).all():
        raise ValueError("features hold NaN or infinite numbers; make them again")
    boxes = None if found.boxes is None else checked_boxes(found.boxes)
    if boxes is not None and len(boxes) != len(features):
        raise ValueError(f"there are {len(boxes)} boxes for {len(features)} rows of features; give one a row")
    labels = None if found.labels is None else checked_labels(found.labels, len(features))
    return Record(found.key, features, boxes, labels, found.scores)


def checked_picture(found: Picture) -> Picture:
    """The picture, its boxes within it. Raises ValueError."""
    if found.boxes is None:
        return found
    boxes = checked_boxes(found.boxes)
    labels = None if found.labels is None else checked_labels(found.labels, len(boxes))
    return Picture(found.key, found.load, boxes.tolist(), labels)


def checked_boxes(value: Any) -> np.ndarray:
    """(R, 4) float32 between 0 and 1. Raises ValueError."""
    boxes = _numbers(value)
    if boxes is None or boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ValueError(f"boxes are {_shown(value)}; {BOXES}")
    for number, box in enumerate(boxes, 1):
        where = f"box {number} is [{', '.join(f'{side:g}' for side in box)}]"
        if not np.isfinite(box).all():
            raise ValueError(f"{where}; {BOXES}")
        if (box < -ROUNDING).any() or (box > 1 + ROUNDING).any():
            raise ValueError(f"{where}, which reaches outside the picture; {BOXES}")
        if (box[:2] > box[2:]).any():
            raise ValueError(f"{where}, which ends before it begins; {BOXES}")
    return boxes.clip(0, 1)


def checked_labels(value: Any, count: int) -> tuple[str, ...]:
    """Raises ValueError where they are not one text a box."""
    if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(one, str) for one in value):
        raise ValueError(f'labels are {_shown(value)}; write a text a box, like ["dog"]')
    if len(value) != count:
        raise ValueError(f"there are {len(value)} labels for {count} boxes; give one a box")
    return tuple(value)


def _numbers(value: Any) -> np.ndarray | None:
    """The value as float32; None where it is not rows of numbers."""
    try:
        found = np.asarray(value)
        return found.astype(np.float32) if found.dtype.kind in "fiu" else None
    except (TypeError, ValueError):
        return None


def _shown(value: Any) -> str:
    try:
        return json.dumps(value)[:40]
    except (TypeError, ValueError):
        return f"of shape {value.shape}" if isinstance(value, np.ndarray) else str(value)[:40]
