"""Shared by the readers of published feature files: relative boxes, class names, classes of regions, base64."""

from __future__ import annotations

import binascii
import io
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mmgen.errors import DataError
from mmgen.features.classes import Classes
from mmgen.reading.text import read_text

from . import Published

MOST_BYTES = 1 << 30  # limit of an image's features


def relative_boxes(boxes: np.ndarray, width: float, height: float) -> np.ndarray:
    """Boxes (R, 4) in pixels -> relative to the image's size. Raises ValueError for an image of size 0 or infinity, and
    for boxes that are relative already."""
    if not (0 < width < math.inf and 0 < height < math.inf):
        raise ValueError(f"the image size is {width:g} x {height:g} pixels; it must be positive and finite")
    if 0 < boxes.max(initial=0) <= 1 < min(width, height):
        raise ValueError(
            f"no box ends after {boxes.max():g} pixels; boxes must be in pixels, not relative to the image"
        )
    return boxes.reshape(-1, 4).astype(np.float32) / np.array([width, height, width, height], np.float32)


def decode(text: bytes, kind: str, name: str) -> np.ndarray:
    """base64 -> a flat array. Raises ValueError with the column's name if the text is damaged."""
    try:
        raw = binascii.a2b_base64(text, strict_mode=True)
    except binascii.Error:
        raise ValueError(f"{name}: not base64, or truncated") from None
    size = np.dtype(kind).itemsize
    if len(raw) % size:
        raise ValueError(f"{name}: {len(raw)} bytes are not a whole number of {size}-byte values")
    return np.frombuffer(raw, kind)


def read_class_names(config: Published) -> Sequence[str]:
    """Class names, one per line; of several names on a line, the first."""
    if config.class_names is None:
        return ()
    try:
        text = read_text(config.class_names)
    except DataError as error:
        raise DataError(f"{error}; 'class_names' must be a text file with one class per line") from None
    return [line.split(",")[0].strip() for line in io.StringIO(text)]


def names_of(numbers: np.ndarray | None, names: Sequence[str]) -> tuple[str, ...] | None:
    """Class names of class numbers; None without numbers or names."""
    if numbers is None or not names:
        return None
    return tuple(
        names[number] if 0 <= number < len(names) else f"class {number}" for number in numbers.astype(int).tolist()
    )


def single_classes(numbers: np.ndarray | None, scores: np.ndarray | None, names: Sequence[str]) -> Classes | None:
    """The single class of each region as a distribution, with its score or 1; None without numbers or names. A number
    without a name counts as no class."""
    if numbers is None or not names:
        return None
    ids = numbers.reshape(-1, 1).astype(int)
    ids = np.where((ids >= 0) & (ids < len(names)), ids, -1).astype(np.int32)
    probabilities = (
        np.ones(ids.shape) if scores is None or scores.size != ids.size else scores.reshape(-1, 1).clip(0, 1)
    )
    return Classes(tuple(names), ids, np.where(ids >= 0, probabilities, 0).astype(np.float32))


def distributions(probabilities: np.ndarray | None, names: Sequence[str]) -> Classes | None:
    """The most probable classes of distributions (R, C), or (R, C + 1) with the background first; None without
    probabilities or names. Raises ValueError for a different number of classes."""
    if probabilities is None or not names:
        return None
    if probabilities.ndim != 2 or probabilities.shape[1] not in (len(names), len(names) + 1):
        raise ValueError(f"cls_prob has shape {probabilities.shape}, but there are {len(names)} class names")
    return Classes.surest(names, probabilities[:, probabilities.shape[1] - len(names) :])


def existing_path(source: object, kind: str) -> Path:
    """The source as an existing path. Raises DataError."""
    if not isinstance(source, str | Path) or not Path(source).exists():
        raise DataError(f"{source}: no such {kind}")
    if kind == "file" and Path(source).is_dir():
        raise DataError(f"{source}: is a folder; name a file of features")
    return Path(source)
