"""Values of queries as pictures, files, boxes or features, in all accepted forms, with a feature store's checks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ..features.images import open_image
from ..features.picture_sources import picture
from ..features.pixels import FRAMES, UnknownPixels, as_rgb, from_array, load_image
from ..parts import File, Picture, Record

ROUNDING = 1e-4  # boxes may exceed the picture by this share, as in a store
LARGEST = 1e15  # of a feature; squares of larger values overflow
BOXES = "write boxes as a list of [x0, y0, x1, y1], relative to the picture's size, such as [[0, 0, 0.5, 1]]"


def as_picture(value: Any, name: str, folder: Path | None = Path()) -> Picture | None:
    """A value as a picture; None for any other value, such as a key or features.

    value   a path, the bytes of an image file, a file opened for reading, a PIL image, an array
            (`mmgen.features.pixels.from_array`), a `Picture`, or a dict {"picture": any of these, "boxes",
            "region_names"}
    name    the key of a picture without a path
    folder  the base of relative paths; None: no string is a path

    Raises ValueError and DataError for an invalid or unreadable picture."""
    if isinstance(value, Picture):
        return _check_picture(replace(value, load=Opening(partial(load_image, value))))
    if isinstance(value, str | Path):
        if (path := _path_of(value, folder)) is None:
            return None
        return replace(named := picture(path), load=Opening(named.load))
    if isinstance(value, Mapping):
        return _from_mapping(value, name, folder) if "picture" in value else None
    if isinstance(value, np.ndarray):
        return Picture(name, Opening(from_array(value).copy))
    if isinstance(value, Image.Image):
        if 0 in value.size:
            raise ValueError(f"the picture has no pixels: it is {value.width} wide and {value.height} high")
        try:
            image = as_rgb(value)  # now: the file behind the image may be closed later
        except UnknownPixels as error:
            raise ValueError(f"the picture {error}") from None
        except OSError:
            raise ValueError("the picture's file is cut short or damaged; get it again") from None
        return Picture(name, Opening(image.copy))
    if hasattr(value, "__array__"):
        shape = tuple(getattr(value, "shape", ()))
        raise ValueError(f"a {type(value).__name__} of shape {shape} is no picture; give a numpy array, channels last")
    if (content := _bytes_of(value, "picture's file")) is not None:
        return Picture(name, Opening(partial(_open_bytes, content, name)))
    return None


@dataclass
class Opening:
    """Opens the picture of a query, and then knows how many frames its file has."""

    load: Callable[[], Image.Image]
    frames: int = 1

    def __call__(self) -> Image.Image:
        image = self.load()
        self.frames = image.info.get(FRAMES, 1)
        return image


def frames_remarks(pictures: Sequence[Picture]) -> Iterator[str]:
    """A remark for every picture of a query that has been opened, and has several frames."""
    for number, opened in enumerate(pictures, 1):
        if (frames := getattr(opened.load, "frames", 1)) > 1:
            which = "the picture" if len(pictures) == 1 else f"picture {number}"
            yield f"{which} has {frames:,} frames; the first was read"


def as_file(value: Any, name: str, folder: Path | None = Path()) -> File | None:
    """A value as a file: a path, bytes, a file opened for reading, or a `File`; None for any other value, such as a
    key. `name`: of a file without a path. `folder`: as in `as_picture`. Raises ValueError for an unreadable file."""
    if isinstance(value, File):
        return value
    if isinstance(value, str | Path):
        return None if (path := _path_of(value, folder)) is None else File(str(path), path)
    content = _bytes_of(value, "file")
    return None if content is None else File(name, content)


def _path_of(value: str | Path, folder: Path | None) -> Path | None:
    """The path of an existing file; None for any other string, and without a folder."""
    return folder / value if folder is not None and is_file(folder / value) else None


def _bytes_of(value: Any, what: str) -> bytes | None:
    """The bytes of a value that has some. Raises ValueError for an opened file that cannot be read."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if not hasattr(value, "read"):
        return None
    try:
        content = value.read()
    except OSError:
        raise ValueError(f"the {what} cannot be read; open(path, 'rb') for reading") from None
    if not isinstance(content, bytes):
        raise ValueError(f"open the {what} in binary mode: open(path, 'rb')")
    if not content:
        raise ValueError(f"the {what} has no more bytes; call seek(0) if the file was read before")
    return content


def _open_bytes(content: bytes, name: str) -> Image.Image:
    return open_image(BytesIO(content), name)


def _from_mapping(value: Mapping[str, Any], name: str, folder: Path | None) -> Picture:
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
    return _check_picture(
        replace(image, boxes=value.get("boxes"), region_names=value.get("region_names"), classes=None)
    )


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
    return replace(image, boxes=boxes.tolist(), region_names=region_names, classes=None)


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
