"""Shared by the readers of published feature files: their base, relative boxes, class names and classes, base64."""

from __future__ import annotations

import binascii
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from mmgen.errors import DataError
from mmgen.features.classes import Classes
from mmgen.files import image_key
from mmgen.parts import Extractor, FailedImage, Picture, Record
from mmgen.reading.text import read_text

from . import Published

MOST_BYTES = 1 << 30  # limit of an image's features


class PublishedReader(Extractor):
    """Base of the readers. An image that cannot be read is reported as a failed image, and reading continues."""

    def __init__(self, config: Published) -> None:
        self.names = read_vocabulary(config.class_names) if config.class_names else []
        self.fingerprint = {"extractor": config.type, "model": config.model}

    def images(self, path: Path) -> Iterator[tuple[str, str, Callable[[str], Record]]]:
        """The name of every image, its place for messages, and what makes a record of its key, or raises anything."""
        raise NotImplementedError

    def records(
        self, source: Iterable[Picture] | Path, skip: frozenset[str] = frozenset()
    ) -> Iterator[Record | FailedImage]:
        for name, place, read in self.images(existing_path(source)):
            if (key := image_key(name)) in skip:
                continue
            try:
                yield replace(read(key), place=place)
            except Exception as error:  # on damaged files, numpy and h5py raise nearly anything
                yield FailedImage(key, f"{place}: {_read_error(error)}")


def _read_error(error: Exception) -> str:
    """The first line of an error. numpy's advice to unpickle objects is replaced."""
    text = getattr(error, "strerror", None) or str(error).partition("\n")[0]
    if "pickle" in text or "Python objects" in text:
        return "damaged, or contains Python objects, which could run any program and are never opened"
    return text or type(error).__name__


def existing_path(source: object) -> Path:
    """The source as an existing path. Raises DataError."""
    if not isinstance(source, str | Path) or not Path(source).exists():
        raise DataError(f"{source}: no such file or folder")
    return Path(source)


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
        return np.frombuffer(binascii.a2b_base64(text, strict_mode=True), kind)
    except ValueError:
        raise ValueError(f"{name}: not base64 of {kind[1:]} numbers, or truncated") from None


def read_vocabulary(path: Path) -> list[str]:
    """The first name of every line ("stop sign,stopsign")."""
    return [line.split(",")[0].strip() for line in read_text(path).split("\n") if line.strip()]


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
    known = np.ones(ids.shape) if scores is None or scores.size != ids.size else scores.reshape(-1, 1).clip(0, 1)
    return Classes(tuple(names), ids, np.where(ids >= 0, known, 0).astype(np.float32))


def distributions(probabilities: np.ndarray | None, names: Sequence[str]) -> Classes | None:
    """The most probable classes of distributions (R, C), or (R, C + 1) with the background first; None without
    probabilities or names. Raises ValueError for a different number of classes."""
    if probabilities is None or not names:
        return None
    if probabilities.ndim != 2 or probabilities.shape[1] not in (len(names), len(names) + 1):
        raise ValueError(f"cls_prob has shape {probabilities.shape}, but there are {len(names)} class names")
    return Classes.surest(names, probabilities[:, -len(names) :])
