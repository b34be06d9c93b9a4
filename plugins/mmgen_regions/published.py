"""What the readers of published feature files share: boxes in pixels to relative ones, names of classes, arrays from
bytes."""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mmgen.errors import DataError
from mmgen.features.classes import Classes

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


def surest(numbers: np.ndarray | None, scores: np.ndarray | None, names: Sequence[str]) -> Classes | None:
    """The one class of each region that a file tells, with its score, or with 1, as a distribution; where names are
    known. A number without a name is no class."""
    if numbers is None or not names:
        return None
    ids = numbers.reshape(-1, 1).astype(int)
    ids = np.where((ids >= 0) & (ids < len(names)), ids, -1).astype(np.int32)
    told = np.ones(ids.shape) if scores is None or scores.size != ids.size else scores.reshape(-1, 1).clip(0, 1)
    return Classes(tuple(names), ids, np.where(ids >= 0, told, 0).astype(np.float32))


def distributions(chances: np.ndarray | None, names: Sequence[str]) -> Classes | None:
    """The surest classes of distributions (R, C), or (R, C + 1) with the background in front; where names are known.
    Raises ValueError for another number of classes."""
    if chances is None or not names:
        return None
    if chances.ndim != 2 or chances.shape[1] not in (len(names), len(names) + 1):
        raise ValueError(f"cls_prob is of shape {chances.shape}, and there are {len(names)} names of classes")
    return Classes.surest(names, chances[:, chances.shape[1] - len(names) :])


def needs_file(source: object, what: str) -> Path:
    """The source as a path that exists."""
    if not isinstance(source, str | Path) or not Path(source).exists():
        raise DataError(f"{source}: no such {what}")
    if what == "file" and Path(source).is_dir():
        raise DataError(f"{source}: is a folder, and one file of features is read; name the file")
    return Path(source)
