"""Reads features from folders with one file per image: NPZ of bottom-up-attention.pytorch, or NPY of MMF.

<name>.npz   x (R, D), bbox (R, 4) in pixels, image_w, image_h; optional objects_id and objects_conf, or cls_prob (R, C)
<name>.npy   (R, D); optional <name>_info.json with bbox, image_width, image_height
"""

from __future__ import annotations

import json
import logging
import math
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from mmgen.errors import DataError
from mmgen.files import image_key
from mmgen.parts import Extractor, FailedImage, Picture, Record

from . import NpzFolder
from .published_features import (
    MOST_BYTES,
    distributions,
    existing_path,
    names_of,
    read_class_names,
    relative_boxes,
    single_classes,
)

FEATURES, BOXES = ("x", "features", "feat"), ("bbox", "boxes")
MAGIC_BYTES = {".npz": b"PK", ".npy": b"\x93NUMPY"}
log = logging.getLogger("mmgen")


class ArrayFolder(Extractor):
    """Reads a folder of arrays. A file that cannot be read is reported as a failed image; reading continues."""

    def __init__(self, config: NpzFolder) -> None:
        self.names = read_class_names(config)
        self.fingerprint = {"extractor": "npz_folder", "model": config.model}

    def count(self, source: Iterable[Picture] | Path) -> int:
        return len(files(existing_path(source, "folder")))

    def records(
        self, source: Iterable[Picture] | Path, skip: frozenset[str] = frozenset()
    ) -> Iterator[Record | FailedImage]:
        warned = False
        for path in files(existing_path(source, "folder")):
            key = image_key(path.name)
            if key in skip:
                continue
            if (
                not warned
                and path.suffix == ".npy"
                and _path_beside(path, "_info.npy").exists()
                and not _path_beside(path, "_info.json").exists()
            ):
                warned = True
                log.warning(
                    "%s: pickles are never opened because they could run any program; boxes are unknown without "
                    "_info.json",
                    _path_beside(path, "_info.npy"),
                )
            try:
                _check_magic(path)
                record = self._read_npz(key, path) if path.suffix == ".npz" else self._read_npy(key, path)
                yield replace(record, place=str(path))
            except Exception as error:  # on damaged files, numpy raises nearly anything
                yield FailedImage(key, f"{path}: {_read_error(error)}")

    def _read_npz(self, key: str, path: Path) -> Record:
        with np.load(path, allow_pickle=False) as archive:
            for member in archive.zip.infolist():
                _check_size(archive.zip, member)
            features, boxes = _first_array(archive, FEATURES), _first_array(archive, BOXES)
            if features is None:
                raise ValueError(f"has no features ({', '.join(FEATURES)}); its arrays are {', '.join(archive.files)}")
            if boxes is not None:
                if "image_w" not in archive or "image_h" not in archive:
                    raise ValueError("has boxes but no image size (image_w, image_h)")
                boxes = relative_boxes(boxes, float(archive["image_w"]), float(archive["image_h"]))
            classes, scores = _first_array(archive, ("objects_id",)), _first_array(archive, ("objects_conf",))
            distribution = distributions(_first_array(archive, ("cls_prob",)), self.names) or single_classes(
                classes, scores, self.names
            )
        return Record(key, features, boxes, names_of(classes, self.names), scores, distribution)

    def _read_npy(self, key: str, path: Path) -> Record:
        """Features from KEY.npy, with the boxes of KEY_info.json if that file exists."""
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)  # to know the size before reading
        if mapped.nbytes > MOST_BYTES:
            raise ValueError(f"is {mapped.nbytes} bytes large; at most {MOST_BYTES} are read")
        info_path = _path_beside(path, "_info.json")
        if not info_path.exists():
            return Record(key, np.array(mapped))
        info = json.loads(info_path.read_text(encoding="utf-8"))
        return Record(
            key,
            np.array(mapped),
            relative_boxes(np.array(info["bbox"], np.float32), info["image_width"], info["image_height"]),
        )


def _check_magic(path: Path) -> None:
    """Raise ValueError for a file of another format. numpy would take the file for a pickle and suggest opening it."""
    with path.open("rb") as file:
        if not file.read(6).startswith(MAGIC_BYTES[path.suffix]):
            raise ValueError(f"does not begin like a {path.suffix} file; the file is damaged or has another format")


def _read_error(error: Exception) -> str:
    """The first line of an error. numpy's advice to unpickle objects is replaced."""
    text = getattr(error, "strerror", None) or str(error).partition("\n")[0]
    if "pickle" in text or "Python objects" in text:
        return "contains Python objects instead of numbers; they could run any program and are never opened"
    return text or type(error).__name__


def _check_size(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Raise ValueError for an array that is larger than MOST_BYTES or than its compressed data: numpy allocates the
    memory that an array's header claims before it reads the data."""
    if member.file_size > MOST_BYTES:
        raise ValueError(f"'{member.filename}' is {member.file_size} bytes large; at most {MOST_BYTES} are read")
    if not member.filename.endswith(".npy"):
        return
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = header(file)
    if math.prod(shape) * dtype.itemsize > member.file_size:
        raise ValueError(
            f"'{member.filename}' claims {math.prod(shape) * dtype.itemsize} bytes but contains {member.file_size}"
        )


def files(folder: Path) -> list[Path]:
    """Array files in a folder, sorted by name. Raises DataError if there are none."""
    if not folder.is_dir():
        raise DataError(f"{folder}: not a folder; give a folder of .npz or .npy files")
    paths = sorted(
        path for path in folder.iterdir() if path.suffix in (".npz", ".npy") and not path.stem.endswith("_info")
    )
    if not paths:
        raise DataError(f"{folder}: contains no .npz or .npy files")
    return paths


def _path_beside(path: Path, ending: str) -> Path:
    return path.with_name(path.stem + ending)


def _first_array(archive: Mapping[str, np.ndarray], names: Iterable[str]) -> np.ndarray | None:
    """The first of these arrays that the archive has."""
    return next((archive[name] for name in names if name in archive), None)
