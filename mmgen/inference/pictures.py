"""Pictures and features that a query brings along, in any of their forms, checked as those of a store are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ..features.extract import picture
from ..features.images import open_image, upright
from ..parts import Picture, Record

ROUNDING = 1e-4  # boxes may reach outside the picture by so much, as in a store
LARGEST = 1e15  # of a feature; the squares of larger ones overflow
BOXES = "write boxes as rows of x0, y0, x1, y1, each a share of the picture from 0 to 1, like [[0, 0, 0.5, 1]]"


def as_picture(value: Any, name: str, folder: Path = Path()) -> Picture | None:
    """The picture that a value is or names; None where it is no picture: a key, features, anything else.

    value   a path, the bytes of an image file, a file opened for reading, a PIL image, an array (H, W, 3) of uint8, a
            `Picture`, or a dict {"picture": any of these, "boxes", "labels"}
    name    what a picture without a path is called
    folder  where relative paths begin

    Raises ValueError and DataError for a picture that is described wrongly, or cannot be read."""
    if isinstance(value, Picture):
        return _checked_picture(value)
    if isinstance(value, str | Path):
        return picture(folder / value) if _is_file(folder / value) else None
    if isinstance(value, Mapping):
        return _described(value, name, folder) if "picture" in value else None
    if isinstance(value, bytes | bytearray | memoryview):
        return Picture(name, partial(_decoded, bytes(value), name))
    if isinstance(value, np.ndarray):
        if value.ndim != 3 or value.shape[2] != 3 or value.dtype != np.uint8:
            raise ValueError(f"a picture's array must be (H, W, 3) of uint8, not {value.shape} of {value.dtype}")
        return Picture(name, partial(Image.fromarray, value))
    if isinstance(value, Image.Image):
        image = upright(value)  # at once: the file behind it may be closed later
        return Picture(name, lambda: image)
    if hasattr(value, "read"):
        content = value.read()
        if not isinstance(content, bytes):
            raise ValueError("open the picture's file in binary mode: open(path, 'rb')")
        if not content:
            raise ValueError("the picture's file gives no bytes; if it has been read before, call seek(0)")
        return Picture(name, partial(_decoded, content, name))
    return None


def _decoded(content: bytes, name: str) -> Image.Image:
    return open_image(BytesIO(content), name)


def _described(value: Mapping[str, Any], name: str, folder: Path) -> Picture:
    """A picture with its boxes, as JSON has it."""
    if unknown := [key for key in value if key not in ("picture", "boxes", "labels")]:
        raise ValueError(f'"{unknown[0]}" is not known beside "picture"; there are boxes and labels')
    if value.get("labels") is not None and value.get("boxes") is None:
        raise ValueError("labels are given without boxes; give each label a box, or leave the labels out")
    image = as_picture(value["picture"], name, folder)
    if image is None:
        raise ValueError(f"{value['picture']}: no such file")
    return _checked_picture(Picture(image.key, image.load, value.get("boxes"), value.get("labels")))


def as_record(value: Any, name: str) -> Record | None:
    """Features, from a `Record` or as JSON has them ({"features", "boxes", "labels"}); None of anything else. Raises
    ValueError."""
    if isinstance(value, Record):
        return _checked_record(value)
    if not isinstance(value, Mapping):
        return None
    if unknown := [key for key in value if key not in ("features", "boxes", "labels")]:
        raise ValueError(f'"{unknown[0]}" is not known; there are picture, features, boxes and labels')
    if "features" not in value:
        raise ValueError('it has neither "picture" nor "features"')
    return _checked_record(Record(name, value["features"], value.get("boxes"), value.get("labels")))


def _checked_record(record: Record) -> Record:
    features = _numbers(record.features)
    if features is None or features.ndim != 2:
        raise ValueError(f"features must be rows of numbers, a row a region, not {_shown(record.features)}")
    if np.isnan(features).any() or (np.abs(features) > LARGEST).any():
        raise ValueError(f"features must be finite, and between -{LARGEST:g} and {LARGEST:g}; make them again")
    boxes = None if record.boxes is None else _checked_boxes(record.boxes)
    if boxes is not None and len(boxes) != len(features):
        raise ValueError(f"got {len(boxes)} boxes for {len(features)} rows of features; give one box per row")
    labels = None if record.labels is None else _checked_labels(record.labels, len(features))
    return Record(record.key, features, boxes, labels, record.scores)


def _checked_picture(image: Picture) -> Picture:
    if image.boxes is None:
        return image
    boxes = _checked_boxes(image.boxes)
    labels = None if image.labels is None else _checked_labels(image.labels, len(boxes))
    return Picture(image.key, image.load, boxes.tolist(), labels)


def _checked_boxes(value: Any) -> np.ndarray:
    """(R, 4) float32 between 0 and 1."""
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


def _checked_labels(value: Any, count: int) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(label, str) for label in value):
        raise ValueError(f'labels are {_shown(value)}; give one text per box, like ["dog"]')
    if len(value) != count:
        raise ValueError(f"got {len(value)} labels for {count} box{'es' * (count != 1)}; give one label per box")
    return tuple(value)


def _numbers(value: Any) -> np.ndarray | None:
    """The value as float32; None where it is not rows of numbers."""
    try:
        array = np.asarray(value)
        with np.errstate(over="ignore"):  # what becomes infinite is refused
            return array.astype(np.float32) if array.dtype.kind in "fiu" else None
    except (TypeError, ValueError):
        return None


def _shown(value: Any) -> str:
    try:
        return json.dumps(value)[:40]
    except (TypeError, ValueError):
        return f"of shape {value.shape}" if isinstance(value, np.ndarray) else str(value)[:40]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long for a name, or it holds a NUL
        return False
