"""HDF5 as bottom-up-attention-vqa writes it, with the row of an image in a file beside it.

image_features    (n, R, D), or (sum R, D) when the number of regions differs; then
pos_boxes         (n, 2)     says from which row to which an image goes
spatial_features  (..., 6)   x0, y0, x1, y1, width, height, relative to the image's size
image_bb          (..., 4)   x0, y0, x1, y1 in pixels; the image's size is not in the file, so they cannot be used
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import h5py
import numpy as np

from mmgen.errors import DataError
from mmgen.features.untrusted_hdf5 import MOST_BYTES, opened, own_dataset
from mmgen.files import image_key
from mmgen.parts import Extractor, FailedImage, Picture, Record

from . import LxmertH5
from .published import needs_file

NAMES = ("image_features", "spatial_features", "pos_boxes")


class LxmertFile(Extractor):
    """An image whose rows are not in the file is broken, and the others go on."""

    def __init__(self, config: LxmertH5) -> None:
        self.index = read_index(config.index)
        self.fingerprint = {"extractor": "lxmert_h5", "model": config.model}

    def count(self, source: Iterable[Picture] | Path) -> int:
        return len(self.index)

    def records(
        self, source: Iterable[Picture] | Path, skip: frozenset[str] = frozenset()
    ) -> Iterator[Record | FailedImage]:
        path = needs_file(source, "file")
        try:
            with opened(path, NAMES) as file:
                datasets = checked({name: own_dataset(file, name) for name in NAMES if name in file})
                for name, row in self.index.items():
                    key = image_key(name)
                    if key not in skip:
                        outcome = self._image(key, row, datasets)
                        yield FailedImage(key, f"{path}: {outcome}") if isinstance(outcome, str) else outcome
        except (OSError, ValueError, RuntimeError, LookupError, TypeError) as error:
            raise DataError(f"{path}: not features in HDF5, or damaged: {str(error).partition(chr(10))[0]}") from None

    def _image(self, key: str, row: int, datasets: dict[str, h5py.Dataset]) -> Record | str:
        """A record, or why there is none."""
        features, ranges = datasets["image_features"], datasets.get("pos_boxes")
        images = len(features) if ranges is None else len(ranges)
        if not 0 <= row < images:
            return f"the index gives it row {row}, and there are {images}"
        rows: int | slice
        if ranges is None:
            rows, size = row, features.nbytes // images
        else:
            first, last = (int(number) for number in ranges[row])
            if not 0 <= first <= last <= len(features):
                return f"pos_boxes gives it the rows {first} to {last}, and there are {len(features)}"
            rows, size = slice(first, last), (last - first) * features.shape[1] * features.dtype.itemsize
        if size > MOST_BYTES:
            return f"its features would be {size} bytes large"
        boxes = datasets["spatial_features"][rows, ..., :4] if "spatial_features" in datasets else None
        return Record(key, features[rows], None if boxes is None else np.asarray(boxes, np.float32))


def checked(datasets: dict[str, h5py.Dataset]) -> dict[str, h5py.Dataset]:
    """Datasets that fit together. Raises ValueError for others."""
    features, boxes, ranges = (datasets.get(name) for name in NAMES)
    if features is None or features.dtype.kind != "f" or features.ndim != (3 if ranges is None else 2):
        raise ValueError("image_features must be numbers: (images, regions, width), or (rows, width) beside pos_boxes")
    if ranges is not None and (ranges.dtype.kind not in "iu" or ranges.ndim != 2 or ranges.shape[1] != 2):
        raise ValueError(f"pos_boxes must be whole numbers, (images, 2), not {ranges.dtype} {ranges.shape}")
    if boxes is not None and (
        boxes.dtype.kind != "f" or boxes.shape[:-1] != features.shape[:-1] or boxes.shape[-1] < 4
    ):
        raise ValueError(
            f"spatial_features must be {(*features.shape[:-1], 6)} beside these image_features, not {boxes.dtype} "
            f"{boxes.shape}"
        )
    return datasets


def read_index(path: Path) -> dict[str, int]:
    """Image id -> row. Raises DataError for a pickle, which is never opened, and for anything else that is no index."""
    if path.suffix in (".pkl", ".pickle"):
        raise DataError(
            f"{path}: a pickle could run any program and is not opened; write it as JSON once where you trust it:  "
            "json.dump({str(k): v for k, v in index.items()}, open('index.json', 'w'))"
        )
    try:
        index = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; index is a JSON file with the row of every image") from None
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON: {error}") from None
    if isinstance(index, list) and all(isinstance(name, str | int) for name in index):
        index = {str(name): row for row, name in enumerate(index)}
    if not isinstance(index, dict) or not all(
        isinstance(row, int) and not isinstance(row, bool) for row in index.values()
    ):
        raise DataError(f"{path}: must be a table of image id to row, or a list of image ids")
    return index
