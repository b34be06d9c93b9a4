"""Folders with a file an image: NPZ as bottom-up-attention.pytorch writes it, or NPY as MMF does.

<name>.npz   x (R, D), bbox (R, 4) in pixels, image_w, image_h; maybe objects_id and objects_conf, or cls_prob (R, C)
<name>.npy   (R, D); beside it maybe <name>_info.json with bbox, image_width, image_height
"""

from __future__ import annotations

import json
import logging
import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from mmgen.errors import DataError
from mmgen.features.untrusted_hdf5 import MOST_BYTES
from mmgen.files import image_key
from mmgen.parts import Extractor, FailedImage, Picture, Record

from . import NpzFolder
from .published import class_names, distributions, named, needs_file, relative, surest

FEATURES, BOXES = ("x", "features", "feat"), ("bbox", "boxes")
DAMAGES = (
    ValueError,
    TypeError,
    OSError,
    EOFError,
    LookupError,
    NotImplementedError,
    ArithmeticError,
    RuntimeError,
    SyntaxError,
    AttributeError,
    zipfile.BadZipFile,
    zlib.error,
    tokenize.TokenError,
)
BEGINNINGS = {".npz": b"PK", ".npy": b"\x93NUMPY"}
log = logging.getLogger("mmgen")


class ArrayFolder(Extractor):
    """A file that cannot be read is a broken image, and the others go on."""

    def __init__(self, config: NpzFolder) -> None:
        self.names = class_names(config)
        self.fingerprint = {"extractor": "npz_folder", "model": config.model}

    def count(self, source: Iterable[Picture] | Path) -> int:
        return len(files(needs_file(source, "folder")))

    def records(
        self, source: Iterable[Picture] | Path, skip: frozenset[str] = frozenset()
    ) -> Iterator[Record | FailedImage]:
        told = False
        for path in files(needs_file(source, "folder")):
            key = image_key(path.name)
            if key in skip:
                continue
            if (
                not told
                and path.suffix == ".npy"
                and _beside(path, "_info.npy").exists()
                and not _beside(path, "_info.json").exists()
            ):
                told = True
                log.warning(
                    "%s: a pickle, which could run any program, is never opened; boxes stay unknown without _info.json",
                    _beside(path, "_info.npy"),
                )
            try:
                _begins_rightly(path)
                yield self._npz(key, path) if path.suffix == ".npz" else self._npy(key, path)
            except DAMAGES as error:
                yield FailedImage(key, f"{path}: {_reason(error)}")

    def _npz(self, key: str, path: Path) -> Record:
        with np.load(path, allow_pickle=False) as archive:
            for member in archive.zip.infolist():
                _measured(archive.zip, member)
            features, boxes = _first(archive, FEATURES), _first(archive, BOXES)
            if features is None:
                raise ValueError(f"holds no features ({', '.join(FEATURES)}); it has {', '.join(archive.files)}")
            if boxes is not None:
                if "image_w" not in archive or "image_h" not in archive:
                    raise ValueError("has boxes but not the image's size (image_w, image_h)")
                boxes = relative(boxes, float(archive["image_w"]), float(archive["image_h"]))
            classes, scores = _first(archive, ("objects_id",)), _first(archive, ("objects_conf",))
            told = distributions(_first(archive, ("cls_prob",)), self.names) or surest(classes, scores, self.names)
        return Record(key, features, boxes, named(classes, self.names), scores, told)

    def _npy(self, key: str, path: Path) -> Record:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)  # mapped, so that its size is known before it is read
        if mapped.nbytes > MOST_BYTES:
            raise ValueError(f"would be {mapped.nbytes} bytes large")
        about = _beside(path, "_info.json")
        if not about.exists():
            return Record(key, np.array(mapped))
        info = json.loads(about.read_text(encoding="utf-8"))
        return Record(
            key,
            np.array(mapped),
            relative(np.array(info["bbox"], np.float32), info["image_width"], info["image_height"]),
        )


def _begins_rightly(path: Path) -> None:
    """Raises ValueError for a file of another kind: numpy would take it for a pickle, and give advice on how to open
    it."""
    with path.open("rb") as file:
        if not file.read(6).startswith(BEGINNINGS[path.suffix]):
            raise ValueError(f"does not begin as {path.suffix} files do; it is damaged, or something else")


def _reason(error: Exception) -> str:
    """The first line of an error; but for objects, which numpy says how to open."""
    text = str(error).partition("\n")[0]
    if "pickle" in text or "Python objects" in text:
        return "holds Python objects, not numbers; they could run any program, and are never opened"
    return text or type(error).__name__


def _measured(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Raises ValueError for an array that would be larger than MOST_BYTES, or than what is there to be unpacked: numpy
    takes the memory that an array's header claims before it reads on."""
    if member.file_size > MOST_BYTES:
        raise ValueError(f"'{member.filename}' would be {member.file_size} bytes large")
    if not member.filename.endswith(".npy"):
        return
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, kind = header(file)
    if math.prod(shape) * kind.itemsize > member.file_size:
        raise ValueError(
            f"'{member.filename}' claims {math.prod(shape) * kind.itemsize} bytes and holds {member.file_size}"
        )


def files(folder: Path) -> list[Path]:
    """The arrays in a folder, by name. Raises DataError when there are none."""
    if not folder.is_dir():
        raise DataError(f"{folder}: not a folder of .npz or .npy files")
    found = sorted(
        path for path in folder.iterdir() if path.suffix in (".npz", ".npy") and not path.stem.endswith("_info")
    )
    if not found:
        raise DataError(f"{folder}: holds no .npz and no .npy files")
    return found


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.stem + ending)


def _first(archive: Mapping[str, np.ndarray], names: Iterable[str]) -> np.ndarray | None:
    """The first of these arrays that is there."""
    return next((archive[name] for name in names if name in archive), None)
