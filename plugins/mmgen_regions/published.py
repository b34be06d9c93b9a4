"""What the readers of published feature files share: boxes in pixels to relative ones, names of classes, arrays from
bytes."""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mmgen.errors import DataError

from . import Published


def relative(boxes: np.ndarray, width: float, height: float) -> np.ndarray:
    """(R, 4) pixels -> shares of the image's size. Raises ValueError for an image without a size."""
    if not (width > 0 and height > 0):
        raise ValueError(f"the image is {width:g} x {height:g} pixels large")
    return boxes.reshape(-1, 4).astype(np.float32) / np.array([width, height, width, height], np.float32)


def decoded(text: bytes, kind: str, name: str) -> np.ndarray:
    """base64 -> a flat array. Raises ValueError, naming the column, when it is none."""
    try:
        raw = binascii.a2b_base64(text, strict_mode=True)
    except binascii.Error:
        raise ValueError(f"{name}: not base64, or cut off") from None
    size = np.dtype(kind).itemsize
    if len(raw) % size:
        raise ValueError(f"{name}: {len(raw)} bytes are not a whole number of {size}-byte values")
    return np.frombuffer(raw, kind)


def class_names(config: Published) -> Sequence[str]:
    """Names of the classes; where a line holds several, the first."""
    if config.labels is None:
        return ()
    try:
        return [line.split(",")[0].strip() for line in config.labels.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{config.labels}: cannot be read: {error}; labels is a text file with one class a line"
        ) from None


def named(numbers: np.ndarray | None, names: Sequence[str]) -> tuple[str, ...] | None:
    """Names of classes by their numbers, where both are known."""
    if numbers is None or not names:
        return None
    return tuple(
        names[number] if 0 <= number < len(names) else f"class {number}" for number in numbers.astype(int).tolist()
    )


def needs_file(source: object, what: str) -> Path:
    """The source as a path that exists."""
    if not isinstance(source, str | Path) or not Path(source).exists():
        raise DataError(f"{source}: no such {what}")
    if what == "file" and Path(source).is_dir():
        raise DataError(f"{source}: is a folder, and one file of features is read; name the file")
    return Path(source)
