"""Values of queries as pictures, files or features, in all accepted forms, with a feature store's checks."""

from __future__ import annotations

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
from ..features.pixels import UnknownPixels, as_rgb, from_array, load_image
from ..parts import File, Picture

ROUNDING = 1e-4  # boxes may exceed the picture by this share, as in a store
BOXES = "write boxes as a list of [x0, y0, x1, y1], relative to the picture's size, such as [[0, 0, 0.5, 1]]"


def as_picture(value: Any, name: str, folder: Path | None = Path()) -> Picture | None:
    """A value as a picture; None for any other value, such as a key or features.

    value   a path, the bytes of an image file, a PIL image, an array (`mmgen.features.pixels.from_array`), a `Picture`,
            or a dict {"picture": any of these, "boxes"}
    name    the key of a picture without a path
    folder  the base of relative paths; None: no string is a path

    Raises ValueError and DataError for an invalid or unreadable picture."""
    if isinstance(value, Mapping):
        return _with_boxes(value, name, folder) if "picture" in value else None
    if isinstance(value, Picture):
        return _check_picture(replace(value, load=partial(load_image, value)))
    if isinstance(value, str | Path):
        return picture(folder / value) if folder is not None and _is_file(folder / value) else None
    if isinstance(value, np.ndarray):
        return Picture(name, from_array(value).copy)
    if isinstance(value, Image.Image):
        return Picture(name, _rgb_of(value).copy)  # now: the file behind the image may be closed later
    if isinstance(value, bytes | bytearray | memoryview):
        return Picture(name, lambda: open_image(BytesIO(value), name))
    return None


def _rgb_of(image: Image.Image) -> Image.Image:
    if 0 in image.size:
        raise ValueError(f"the picture has no pixels: it is {image.width} wide and {image.height} high")
    try:
        return as_rgb(image)
    except UnknownPixels as error:
        raise ValueError(f"the picture {error}") from None
    except OSError:
        raise ValueError("the picture's file is cut short or damaged; get it again") from None


def _with_boxes(value: Mapping[str, Any], name: str, folder: Path | None) -> Picture:
    """A picture with boxes, from a JSON object."""
    if unknown := [key for key in value if key not in ("picture", "boxes")]:
        raise ValueError(f'unknown key "{unknown[0]}" beside "picture"; use "boxes"')
    image = None if isinstance(value["picture"], Mapping) else as_picture(value["picture"], name, folder)
    if image is None:
        raise ValueError(f"{value['picture']!s:.60}: no such file")
    return _check_picture(replace(image, boxes=value.get("boxes")))


def as_file(value: Any, name: str, folder: Path | None = Path()) -> File | None:
    """A value as a file: a path, bytes, or a `File`; None for any other value, such as a key. `name`: of a file without
    a path. `folder`: as in `as_picture`."""
    if isinstance(value, bytes | bytearray | memoryview):
        return File(name, bytes(value))
    if isinstance(value, str | Path) and folder is not None and _is_file(folder / value):
        return File(str(folder / value), folder / value)
    return value if isinstance(value, File) else None


def _is_file(path: Path) -> bool:
    """Whether a path is a regular file; False for a name that no file can have."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # the name is too long or contains a NUL
        return False


def _check_picture(image: Picture) -> Picture:
    return replace(image, boxes=None if image.boxes is None else _check_boxes(image.boxes), classes=None)


def _check_boxes(value: Any) -> list[list[float]]:
    """R boxes between 0 and 1."""
    try:
        boxes = np.asarray(value, np.float32)
        good = boxes.ndim == 2 and boxes.shape[1] == 4
    except (TypeError, ValueError):
        good = False
    if not good:
        raise ValueError(f"got boxes {value!r:.60}; {BOXES}")
    for number, box in enumerate(boxes, 1):
        if not ((box >= -ROUNDING) & (box <= 1 + ROUNDING)).all() or (box[:2] > box[2:]).any():
            sides = ", ".join(f"{side:g}" for side in box)
            raise ValueError(f"box {number} is [{sides}], which is no part of the picture; {BOXES}")
    return boxes.clip(0, 1).tolist()
