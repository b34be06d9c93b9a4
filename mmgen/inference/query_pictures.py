"""Values of queries as pictures and files, in all accepted forms."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ..features.images import open_image
from ..features.picture_sources import picture
from ..features.pixels import as_rgb, from_array, load_image
from ..parts import File, Picture

ROUNDING = 1e-4  # boxes may exceed the picture by this share, as in a store
BOXES = "write boxes as a list of [x0, y0, x1, y1], relative to the picture's size, such as [[0, 0, 0.5, 1]]"


def as_picture(value: Any, name: str, folder: Path | None = Path()) -> Picture | None:
    """A value as a picture; None for any other value, such as a key or features.

    value   a path, the bytes of an image file, a PIL image, an array (`mmgen.features.pixels.from_array`), a `Picture`,
            or a dict {"picture": any of these, "boxes"}
    name    the key of a picture without a path
    folder  the base of relative paths; None: no string is a path

    Raises ValueError, OSError and DataError for an invalid or unreadable picture."""
    if isinstance(value, Mapping) and "picture" in value:
        image = None if isinstance(value["picture"], Mapping) else as_picture(value["picture"], name, folder)
        if image is None or len(value) > 1 + ("boxes" in value):
            raise ValueError(
                f'{value!r:.60}: expected {{"picture": PICTURE, "boxes": [...]}}, with a picture that exists'
            )
        return replace(image, boxes=_check_boxes(value.get("boxes")))
    if isinstance(value, Picture):
        return replace(value, load=partial(load_image, value), boxes=_check_boxes(value.boxes), classes=None)
    if isinstance(value, np.ndarray):
        return Picture(name, from_array(value).copy)
    if isinstance(value, Image.Image):
        return Picture(name, as_rgb(value).copy)  # now: the file behind the image may be closed later
    if isinstance(value, bytes):
        return Picture(name, lambda: open_image(BytesIO(value), name))
    return picture(path) if (path := path_of(value, folder)) else None


def as_file(value: Any, name: str, folder: Path | None = Path()) -> File | None:
    """A value as a file: a path, bytes, or a `File`; None for any other value, such as a key. `name`: of a file without
    a path. `folder`: as in `as_picture`."""
    if isinstance(value, bytes):
        return File(name, value)
    if path := path_of(value, folder):
        return File(str(path), path)
    return value if isinstance(value, File) else None


def path_of(value: Any, folder: Path | None) -> Path | None:
    """The regular file that a value names, from a folder."""
    if not isinstance(value, str | Path) or folder is None:
        return None
    path = folder / value
    return path if os.path.isfile(path) else None  # noqa: PTH113  # pathlib raises OSError for a name that is too long


def _check_boxes(value: Any) -> list[list[float]] | None:
    """R boxes between 0 and 1, or None."""
    if value is None:
        return None
    try:
        boxes = np.asarray(value, np.float32)
    except (TypeError, ValueError):
        boxes = np.empty(0, np.float32)
    good = boxes.ndim == 2 and boxes.shape[1] == 4 and (abs(boxes - 0.5) <= 0.5 + ROUNDING).all()
    if not good or (boxes[:, :2] > boxes[:, 2:]).any():
        raise ValueError(f"got boxes {value!r:.60}; {BOXES}")
    return boxes.clip(0, 1).tolist()
