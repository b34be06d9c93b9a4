"""Values of queries as pictures, boxes or features, in all accepted forms, with the checks of a feature store."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ..features.images import open_image, upright
from ..features.picture_sources import picture
from ..parts import Picture, Record

ROUNDING = 1e-4  # boxes may exceed the picture by this share, as in a store
LARGEST = 1e15  # of a feature; squares of larger values overflow
BOXES = "write boxes as a list of [x0, y0, x1, y1], relative to the picture's size, such as [[0, 0, 0.5, 1]]"


def as_picture(value: Any, name: str, folder: Path = Path()) -> Picture | None:
    """A value as a picture; None for any other value, such as a key or features.

    value   a path, the bytes of an image file, a file opened for reading, a PIL image, an array (H, W, 3) of uint8, a
            `Picture`, or a dict {"picture": any of these, "boxes", "region_names"}
    name    the key of a picture without a path
    folder  the base of relative paths

    Raises ValueError and DataError for an invalid or unreadable picture."""
    if isinstance(value, Picture):
        return _check_picture(value)
    if isinstance(value, str | Path):
        return picture(folder / value) if is_file(folder / value) else None
    if isinstance(value, Mapping):
        return _from_mapping(value, name, folder) if "picture" in value else None
    if isinstance(value, bytes | bytearray | memoryview):
        return Picture(name, partial(_open_bytes, bytes(value), name))
    if isinstance(value, np.ndarray):
        if value.ndim != 3 or value.shape[2] != 3 or value.dtype != np.uint8:
            raise ValueError(f"the array of a picture must be (H, W, 3) of uint8, not {value.shape} of {value.dtype}")
        _check_size(value.shape[1], value.shape[0])
        return Picture(name, partial(Image.fromarray, value))
    if isinstance(value, Image.Image):
        _check_size(*value.size)
        try:
            image = upright(value)  # now: the file behind the image may be closed later
        except OSError:
            raise ValueError("the picture's file is cut short or damaged; get it again") from None
        return Picture(name, partial(_return_image, image))
    if hasattr(value, "read"):
        try:
            content = value.read()
        except OSError:
            raise ValueError("the picture's file cannot be read; open(path, 'rb') for reading") from None
        if not isinstance(content, bytes):
            raise ValueError("open the picture's file in binary mode: open(path, 'rb')")
        if not content:
            raise ValueError("the picture's file has no more bytes; call seek(0) if the file was read before")
        return Picture(name, partial(_open_bytes, content, name))
    return None


def _check_size(width: int, height: int) -> None:
    if not width or not height:
        raise ValueError(f"the picture has no pixels: it is {width} wide and {height} high")


def _return_image(image: Image.Image) -> Image.Image:
    return image


def _open_bytes(content: bytes, name: str) -> Image.Image:
    return open_image(BytesIO(content), name)


def _from_mapping(value: Mapping[str, Any], name: str, folder: Path) -> Picture:
    """A picture with boxes, from a JSON object."""
    if unknown := [key for key in value if key not in ("picture", "boxes", "region_names")]:
        raise ValueError(f'unknown key "{unknown[0]}" beside "picture"; use "boxes" and "region_names"')
    if value.get("region_names") is not None and value.get("boxes") is None:
        raise ValueError("region names without boxes; give one box per region name, or leave out the region names")
    if isinstance(value["picture"], Mapping):
        raise ValueError('"picture" holds another object; write one "picture" with "boxes" and "region_names"')
    image = as_picture(value["picture"], name, folder)
    if image is None:
        raise ValueError(f"{value['picture']}: no such file")
    return _check_picture(Picture(image.key, image.load, value.get("boxes"), value.get("region_names")))


def as_record(value: Any, name: str) -> Record | None:
    """Features, from a `Record` or a JSON object {"features", "boxes", "region_names"}; None for any other value.
    Raises ValueError for invalid features."""
    if isinstance(value, Record):
        return _check_record(value)
    if not isinstance(value, Mapping):
        return None
    if unknown := [key for key in value if key not in ("features", "boxes", "region_names")]:
        raise ValueError(f'unknown key "{unknown[0]}"; use "picture", "features", "boxes" and "region_names"')
    if "features" not in value:
        raise ValueError('"picture" or "features" is missing')
    return _check_record(Record(name, value["features"], value.get("boxes"), value.get("region_names")))


def _check_record(record: Record) -> Record:
    features = _as_floats(record.features)
    if features is None or features.ndim != 2:
        raise ValueError(f"features must be rows of numbers, one row per region, not {_preview(record.features)}")
    if np.isnan(features).any() or (np.abs(features) > LARGEST).any():
        raise ValueError(f"features must be finite and between -{LARGEST:g} and {LARGEST:g}; extract them again")
    boxes = None if record.boxes is None else _check_boxes(record.boxes)
    if boxes is not None and len(boxes) != len(features):
        raise ValueError(f"got {len(boxes)} boxes for {len(features)} rows of features; give one box per row")
    region_names = None if record.region_names is None else _check_names(record.region_names, len(features))
    return Record(record.key, features, boxes, region_names, record.scores)


def _check_picture(image: Picture) -> Picture:
    if image.boxes is None:
        return image
    boxes = _check_boxes(image.boxes)
    region_names = None if image.region_names is None else _check_names(image.region_names, len(boxes))
    return Picture(image.key, image.load, boxes.tolist(), region_names)


def _check_boxes(value: Any) -> np.ndarray:
    """(R, 4) float32 between 0 and 1."""
    boxes = _as_floats(value)
    if boxes is None or boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ValueError(f"got boxes {_preview(value)}; {BOXES}")
    for number, box in enumerate(boxes, 1):
        where = f"box {number} is [{', '.join(f'{side:g}' for side in box)}]"
        if not np.isfinite(box).all():
            raise ValueError(f"{where}; {BOXES}")
        if (box < -ROUNDING).any() or (box > 1 + ROUNDING).any():
            raise ValueError(f"{where}, which exceeds the picture; {BOXES}")
        if (box[:2] > box[2:]).any():
            raise ValueError(f"{where}, which ends before its start; {BOXES}")
    return boxes.clip(0, 1)


def _check_names(value: Any, count: int) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(name, str) for name in value):
        raise ValueError(f'got region names {_preview(value)}; give one string per box, such as ["dog"]')
    if len(value) != count:
        raise ValueError(f"got {len(value)} region names for {count} box{'es' * (count != 1)}; give one name per box")
    return tuple(value)


def _as_floats(value: Any) -> np.ndarray | None:
    """The value as a float32 array; None if the value is not an array of numbers."""
    try:
        array = np.asarray(value)
        with np.errstate(over="ignore"):  # infinite values are refused later
            return array.astype(np.float32) if array.dtype.kind in "fiu" else None
    except (TypeError, ValueError):
        return None


def _preview(value: Any) -> str:
    try:
        return json.dumps(value)[:40]
    except (TypeError, ValueError):
        return f"of shape {value.shape}" if isinstance(value, np.ndarray) else str(value)[:40]


def is_file(path: Path) -> bool:
    """Whether a path is a regular file; False for a name that no file can have."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # the name is too long or contains a NUL
        return False
