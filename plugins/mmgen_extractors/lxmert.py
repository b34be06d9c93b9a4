"""Reads features from HDF5 files of bottom-up-attention-vqa; an index file has the row of every image.

image_features    (n, R, D), or (sum R, D) if the number of regions differs; then
pos_boxes         (n, 2)     first and end row of every image
spatial_features  (..., 6)   x0, y0, x1, y1, width, height, relative to the image's size
image_bb          (..., 4)   x0, y0, x1, y1 in pixels; not used, because the file does not have the image's size
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

import h5py
import numpy as np

from mmgen.errors import DataError
from mmgen.files import image_key, json_problem
from mmgen.parts import Extractor, FailedImage, Picture, Record

from . import LxmertH5
from .published_features import MOST_BYTES, existing_path

NAMES = ("image_features", "spatial_features", "pos_boxes")
MOST_COMPRESSION = 1100  # deflate reaches at most a ratio of 1032


class LxmertFile(Extractor):
    """Reads an HDF5 file. An image whose rows are missing is reported as a failed image; reading continues."""

    def __init__(self, config: LxmertH5) -> None:
        self.index = read_index(config.index)
        self.fingerprint = {"extractor": "lxmert_h5", "model": config.model}

    def count(self, source: Iterable[Picture] | Path) -> int:
        return len(self.index)

    def records(
        self, source: Iterable[Picture] | Path, skip: frozenset[str] = frozenset()
    ) -> Iterator[Record | FailedImage]:
        path = existing_path(source, "file")
        try:
            with h5py.File(path, "r", locking="best-effort") as file:
                datasets = check_datasets({name: local_dataset(file, name) for name in NAMES if name in file})
                for name, row in self.index.items():
                    key = image_key(name)
                    if key not in skip:
                        outcome = self._image(key, row, datasets)
                        yield FailedImage(key, f"{path}: {outcome}") if isinstance(outcome, str) else outcome
        except (OSError, ValueError, RuntimeError, LookupError, TypeError) as error:
            reason = str(error).partition("\n")[0]
            raise DataError(f"{path}: not an HDF5 file of features, or damaged: {reason}") from None

    def _image(self, key: str, row: int, datasets: dict[str, h5py.Dataset]) -> Record | str:
        """The record of an image, or the reason of a failure."""
        features, ranges = datasets["image_features"], datasets.get("pos_boxes")
        images = len(features if ranges is None else ranges)
        if not 0 <= row < images:
            return f"its row in the index is {row}, but the file has {images} rows"
        rows: int | slice
        if ranges is None:
            rows, size = row, features.nbytes // images
        else:
            first, last = (int(number) for number in ranges[row])
            if not 0 <= first <= last <= len(features):
                return f"its rows in pos_boxes are {first} to {last}, but the file has {len(features)} rows"
            rows, size = slice(first, last), (last - first) * features.shape[1] * features.dtype.itemsize
        if size > MOST_BYTES:
            return f"its features are {size} bytes large; at most {MOST_BYTES} are read"
        boxes = datasets["spatial_features"][rows, ..., :4] if "spatial_features" in datasets else None
        return Record(key, features[rows], None if boxes is None else np.asarray(boxes, np.float32))


def local_dataset(file: h5py.File, name: str) -> h5py.Dataset:
    """A dataset in the file itself, which needs no more memory than the file suggests. Raises ValueError for others."""
    dataset = file[name] if isinstance(file.get(name, getlink=True), h5py.HardLink) else None
    if not isinstance(dataset, h5py.Dataset) or dataset.is_virtual or dataset.external or dataset.dtype.hasobject:
        raise ValueError(f"'{name}' is not stored in the file itself, or contains no numbers")
    chunk, stored = math.prod(dataset.chunks or ()) * dataset.dtype.itemsize, dataset.id.get_storage_size()
    if chunk > MOST_BYTES or dataset.nbytes > stored * MOST_COMPRESSION:
        raise ValueError(f"'{name}' claims more bytes than are stored")
    return dataset


def check_datasets(datasets: dict[str, h5py.Dataset]) -> dict[str, h5py.Dataset]:
    """Return the datasets. Raises ValueError if their types or shapes do not match."""
    features, boxes, ranges = (datasets.get(name) for name in NAMES)
    if features is None or features.dtype.kind != "f" or features.ndim != (3 if ranges is None else 2):
        raise ValueError("image_features must be numbers: (images, regions, width), or (rows, width) with pos_boxes")
    if ranges is not None and (ranges.dtype.kind not in "iu" or ranges.ndim != 2 or ranges.shape[1] != 2):
        raise ValueError(f"pos_boxes must be whole numbers, (images, 2), not {ranges.dtype} {ranges.shape}")
    if boxes is not None and (
        boxes.dtype.kind != "f" or boxes.shape[:-1] != features.shape[:-1] or boxes.shape[-1] < 4
    ):
        raise ValueError(
            f"spatial_features must be {(*features.shape[:-1], 6)} for these image_features, not {boxes.dtype} "
            f"{boxes.shape}"
        )
    return datasets


def read_index(path: Path) -> dict[str, int]:
    """Image id -> row. Raises DataError for a pickle, which is never opened, and for an invalid index."""
    if path.suffix in (".pkl", ".pickle"):
        raise DataError(
            f"{path}: a pickle could run any program and is not opened; if you trust the file, convert it to JSON:  "
            "json.dump({str(k): v for k, v in index.items()}, open('index.json', 'w'))"
        )
    try:
        index = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; 'index' must be a JSON file with the row of every image") from None
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: {json_problem(error)}") from None
    if isinstance(index, list) and all(isinstance(name, str | int) for name in index):
        index = {str(name): row for row, name in enumerate(index)}
    if not isinstance(index, dict) or not all(type(row) is int for row in index.values()):
        raise DataError(f"{path}: must be a JSON object of image id to row, or a list of image ids")
    return index
