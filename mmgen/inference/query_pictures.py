"""Values of queries as pictures and files, in all accepted forms; features of pictures, by the training's extractor."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ..configs import EmbedderConfig, FeaturesConfig
from ..errors import DataError, UnavailableError
from ..features.embedder import StoredEmbedder
from ..features.fingerprints import differences, in_words
from ..features.images import as_rgb, load_image, open_image
from ..features.images import picture as picture_file
from ..features.writer import checked
from ..model import Model
from ..parts import Extractor, FailedImage, File, Picture, Record
from .query import Query

ROUNDING = 1e-4  # boxes may exceed the picture by this share, as in a store
BOXES = "write boxes as a list of [x0, y0, x1, y1], relative to the picture's size, such as [[0, 0, 0.5, 1]]"


class QueryFeatures:
    """Resolves the values of inputs whose features come from a store. An extractor is built for its first picture, and
    reused. Safe to call from several threads.

    inputs  the step's inputs, by name
    where   the prefix of error messages
    saved   the folder with the inputs' extractors, of an export
    """

    def __init__(self, model: Model, inputs: Mapping[str, EmbedderConfig], where: str, saved: Path | None) -> None:
        self.embedders = {
            name: embedder
            for name, embedder in model.embedders.items()
            if name in inputs and isinstance(embedder, StoredEmbedder)
        }
        self.inputs, self.where, self.saved = inputs, where, saved
        self._extractors: dict[str, Extractor] = {}
        self._lock = threading.Lock()
        self._extracting = threading.Lock()  # held by an extractor that is not thread-safe

    def part(self, name: str, query: Query, value: Any) -> Any:
        """A value as a picture, a file, features, a key of the store, what only the reader knows, or
        an error."""
        reader = self.embedders[name].reader if name in self.embedders else None
        takes = self.inputs[name].takes
        try:
            if reader and isinstance(value, Record):
                return checked(value, "float32")
            read = (as_file if takes == "file" else as_picture)(value, query.id, query.folder)
        except (DataError, OSError, ValueError, TypeError) as error:
            return DataError(f"{name}: {error}")
        if read is not None or (reader is None and query.folder is not None):
            return value if read is None else read
        if reader is None or query.folder is None or not isinstance(value, str):  # a stranger's string is no path
            return DataError(f"{name}: expected a {takes}, but got {value!r:.40}")
        stored = reader.path is not None and reader.path.exists()
        if stored and value in reader.store:
            return value
        return DataError(f"{query.folder / value}: no such file" + f", and not a key of {reader.path}" * stored)

    def records(self, name: str, pictures: Sequence[Picture]) -> list[Record | DataError]:
        """The features of pictures, from one call of the extractor; if that fails, from a call for each. A picture that
        cannot be read is a DataError. Raises UnavailableError if the extractor is not available."""
        if not pictures:
            return []
        extractor, keyed = self.extractor(name), dict[str, Picture]()
        for number, picture in enumerate(pictures):
            key = f"{picture.key} ({number})" if picture.key in keyed else picture.key
            keyed[key] = replace(picture, key=key)
        try:
            with contextlib.nullcontext() if extractor.thread_safe else self._extracting:
                results = {result.key: result for result in extractor.records([*keyed.values()])}
        except DataError as error:
            if len(pictures) == 1:
                return [error]
            return [result for picture in pictures for result in self.records(name, [picture])]
        return [
            DataError(result.reason)
            if isinstance(result := results[key], FailedImage)
            else replace(result, key=picture.key)
            for key, picture in zip(keyed, pictures, strict=True)
        ]

    @property
    def thread_safe(self) -> bool:
        """Whether the extractors that have been built extract features in several threads at a time."""
        return all(extractor.thread_safe for extractor in self._extractors.values())

    def extractor(self, name: str) -> Extractor:
        """The extractor that made the training features of an input. Raises UnavailableError."""
        with self._lock:
            if name not in self._extractors:
                self._extractors[name] = self._build_extractor(name)
            return self._extractors[name]

    def _build_extractor(self, name: str) -> Extractor:
        config, trained = self.inputs[name], self.embedders[name].fingerprint
        if not isinstance(config, FeaturesConfig) or config.extractor is None or config.extractor.source == "file":
            raise UnavailableError(
                f"{self.where}: '{name}' was trained on features of {in_words(trained)}, whose extractor is not known "
                f"here; give a key of the feature store, or name the extractor with --set, in Python with sets of "
                f"mmgen.load: inputs.{name}.extractor.type=NAME"
            )
        saved = self.saved and self.saved / name
        extractor = config.extractor.load(saved) if saved and saved.is_dir() else config.extractor.build()
        fingerprint = dict(extractor.fingerprint)
        if fingerprint != trained and not config.allow_other_features:
            changes = "; ".join(differences(trained, fingerprint))
            raise UnavailableError(
                f"{self.where}: features of this extractor of '{name}' differ from the training features ({changes}); "
                "use the same extractor and settings, or, if the features are the same, add "
                f"--set inputs.{name}.allow_other_features=true"
            )
        return extractor


def as_picture(value: Any, name: str, folder: Path | None = Path()) -> Picture | None:
    """A value as a picture; None for any other value, such as a key or features.

    value   a path, the bytes of an image file, a PIL image, an array of pixels (H, W), (H, W, 3) or (H, W, 4), a
            `Picture`, or a dict {"picture": any of these, "boxes"}
    name    the key of a picture without a path
    folder  the base of relative paths; None: no string is a path, but base64 of a file

    Raises ValueError, OSError and DataError for an invalid or unreadable picture."""
    if isinstance(value, str) and folder is None:
        value = decode(value)
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
        if value.dtype != np.uint8:
            raise ValueError(f"an array of pixels must be of uint8, not {value.dtype}; scale its values to 0 to 255")
        value = Image.fromarray(value)
    if isinstance(value, Image.Image):
        return Picture(name, as_rgb(value).copy)  # now: the file behind the image may be closed later
    if isinstance(value, bytes):
        return Picture(name, lambda: open_image(BytesIO(value), name))
    return picture_file(path) if (path := path_of(value, folder)) else None


def as_file(value: Any, name: str, folder: Path | None = Path()) -> File | None:
    """A value as a file: a path, bytes, or a `File`; None for any other value, such as a key. `name`: of a file without
    a path. `folder`: as in `as_picture`."""
    if isinstance(value, str) and folder is None:
        value = decode(value)
    if isinstance(value, bytes):
        return File(name, value)
    if path := path_of(value, folder):
        return File(str(path), path)
    return value if isinstance(value, File) else None


def decode(text: str) -> bytes:
    """The bytes of a file in base64, or in a data: URL, as a stranger sends it. Raises DataError."""
    content = b""
    with contextlib.suppress(ValueError):
        content = base64.b64decode(re.sub("^data:[^,]*;base64,", "", text, count=1), validate=True)
    if not content:
        raise DataError("expected base64 of a file, or a data: URL with it; addresses are never fetched")
    return content


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
