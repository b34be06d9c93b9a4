"""Reads features from arrays: a folder of NPZ (bottom-up-attention.pytorch) or NPY files (MMF), or an HDF5 file.

<name>.npz   x (R, D), bbox (R, 4) in pixels, image_w, image_h; optional objects_id and objects_conf, or cls_prob (R, C)
<name>.npy   (R, D); optional <name>_info.json with bbox, image_width, image_height

HDF5 of bottom-up-attention-vqa; an index file has the row of every image:

image_features    (n, R, D), or (sum R, D) if the number of regions differs; then
pos_boxes         (n, 2)     first and end row of every image
spatial_features  (..., 6)   x0, y0, x1, y1, width, height, relative to the image's size
image_bb          (..., 4)   x0, y0, x1, y1 in pixels; not used, because the file does not have the image's size
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import h5py
import numpy as np
from mmgen_vision.lines import read_value

from mmgen.errors import DataError
from mmgen.parts import Record

from . import LxmertH5
from .published_features import (
    MOST_BYTES,
    PublishedReader,
    distributions,
    names_of,
    relative_boxes,
    single_classes,
)

FEATURES, BOXES, RANGES = "image_features", "spatial_features", "pos_boxes"
MOST_COMPRESSION = 1100  # deflate reaches at most a ratio of 1032


class ArrayFolder(PublishedReader):
    """Reads a folder of arrays."""

    def images(self, path: Path) -> Iterator[tuple[str, str, Callable[[str], Record]]]:
        for file in files(path):
            yield file.name, str(file), partial(self._read_npz if file.suffix == ".npz" else read_npy, file)

    def _read_npz(self, path: Path, key: str) -> Record:
        with np.load(path, allow_pickle=False) as archive:
            for member in archive.zip.infolist():
                _check_size(archive.zip, member)
            names = ("x", "bbox", "image_w", "image_h", "objects_id", "objects_conf", "cls_prob")
            features, boxes, width, height, numbers, scores, chances = map(archive.get, names)
        if features is None or (boxes is not None and (width is None or height is None)):
            raise ValueError("has no features (x), or boxes without an image size (image_w, image_h)")
        if boxes is not None:
            boxes = relative_boxes(boxes, float(width), float(height))
        classes = distributions(chances, self.names) or single_classes(numbers, scores, self.names)
        return Record(key, features, boxes, names_of(numbers, self.names), scores, classes)


def read_npy(path: Path, key: str) -> Record:
    """Features from KEY.npy, with the boxes of KEY_info.json if that file exists."""
    features = np.array(np.load(path, mmap_mode="r", allow_pickle=False))  # a map is no longer than its file
    about = path.with_name(f"{path.stem}_info.json")
    if not about.exists():
        return Record(key, features)
    info = json.loads(about.read_text(encoding="utf-8"))
    boxes = relative_boxes(np.array(info["bbox"], np.float32), info["image_width"], info["image_height"])
    return Record(key, features, boxes)


def _check_size(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Raise ValueError for an array that is larger than MOST_BYTES or than its data: numpy allocates the memory that an
    array's header claims before it reads the data."""
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = header(file)
    if not math.prod(shape) * dtype.itemsize <= member.file_size <= MOST_BYTES:
        raise ValueError(f"'{member.filename}' claims to be larger than its data, or than {MOST_BYTES >> 20:,} MB")


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


class LxmertFile(PublishedReader):
    """Reads an HDF5 file."""

    def __init__(self, config: LxmertH5) -> None:
        super().__init__(config)
        self.index = read_index(config.index)

    def images(self, path: Path) -> Iterator[tuple[str, str, Callable[[str], Record]]]:
        try:
            with h5py.File(path, "r", locking="best-effort") as file:
                datasets = {name: local_dataset(file, name) for name in (FEATURES, BOXES, RANGES) if name in file}
                check_shapes(datasets)
                for name, row in self.index.items():
                    yield name, str(path), partial(_read, datasets, row)
        except (OSError, ValueError, RuntimeError, LookupError, TypeError) as error:
            reason = str(error).partition("\n")[0]
            raise DataError(f"{path}: not an HDF5 file of features, or damaged: {reason}") from None


def _read(datasets: Mapping[str, h5py.Dataset], row: int, key: str) -> Record:
    features, ranges = datasets[FEATURES], datasets.get(RANGES)
    images = len(features if ranges is None else ranges)
    if not 0 <= row < images:
        raise ValueError(f"its row in the index is {row}, but the file has {images} rows")
    first, last = (row, row + 1) if ranges is None else map(int, ranges[row])
    if not 0 <= first <= last <= len(features):
        raise ValueError(f"its rows in {RANGES} are {first} to {last}, but the file has {len(features)} rows")
    if (size := (last - first) * math.prod(features.shape[1:]) * features.dtype.itemsize) > MOST_BYTES:
        raise ValueError(f"its features are {size} bytes large; at most {MOST_BYTES} are read")
    values = {name: datasets[name][first:last] for name in (FEATURES, BOXES) if name in datasets}
    boxes = values[BOXES].reshape(-1, values[BOXES].shape[-1])[:, :4].astype(np.float32) if BOXES in values else None
    return Record(key, values[FEATURES].reshape(-1, features.shape[-1]), boxes)


def local_dataset(file: h5py.File, name: str) -> h5py.Dataset:
    """A dataset of numbers in the file itself, which needs no more memory than the file suggests. Raises ValueError for
    others."""
    dataset = file[name] if isinstance(file.get(name, getlink=True), h5py.HardLink) else None
    if (
        not isinstance(dataset, h5py.Dataset)
        or dataset.is_virtual
        or dataset.external
        or dataset.dtype.kind not in "fiu"
    ):
        raise ValueError(f"'{name}' is not stored in the file itself, or contains no numbers")
    chunk, stored = math.prod(dataset.chunks or ()) * dataset.dtype.itemsize, dataset.id.get_storage_size()
    if chunk > MOST_BYTES or dataset.nbytes > stored * MOST_COMPRESSION:
        raise ValueError(f"'{name}' claims more bytes than are stored")
    return dataset


def check_shapes(datasets: Mapping[str, h5py.Dataset]) -> None:
    """Raise ValueError if the shapes do not match."""
    features, boxes, ranges = (datasets[name].shape if name in datasets else () for name in (FEATURES, BOXES, RANGES))
    fits = len(features) == (2 if ranges else 3) and ranges[1:] in ((), (2,))
    if not fits or (boxes and (boxes[:-1] != features[:-1] or boxes[-1] < 4)):
        raise ValueError(
            f"{FEATURES} must be (images, regions, width), or (rows, width) with {RANGES} (images, 2), and {BOXES} as "
            f"many rows of 6 numbers; got {features}, {ranges} and {boxes}"
        )


def read_index(path: Path) -> dict[str, int]:
    """Image id -> row. Raises DataError."""
    index = read_value(path)
    if isinstance(index, list) and all(isinstance(name, str | int) for name in index):
        index = {name: row for row, name in enumerate(index)}
    if not isinstance(index, dict) or not all(type(row) is int for row in index.values()):
        raise DataError(f"{path}: must have a row for every image id, or a list of image ids")
    return {str(name): row for name, row in index.items()}
