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
from mmgen.parts import Broken, Extractor, Picture, Record
from mmgen.store import MOST_BYTES, image_key, own_dataset

from . import LxmertH5
from .published import needs_file


class LxmertFile(Extractor):
    """An image whose rows are not in the file is broken, and the others go on."""

    def __init__(self, config: LxmertH5) -> None:
        self.index = read_index(config.index)
        self.fingerprint = {"extractor": "lxmert_h5", "model": config.model}

    def count(self, source: Iterable[Picture] | Path) -> int:
        return len(self.index)

    def records(self, source: Iterable[Picture] | Path, skip: frozenset[str] = frozenset()) -> Iterator[Record | Broken]:
        path = needs_file(source, "file")
        try:
            with h5py.File(path, "r", locking="best-effort") as file:
                datasets = {name: own_dataset(file, name) for name in ("image_features", "spatial_features", "pos_boxes") if name in file}
                if "image_features" not in datasets or datasets["image_features"].ndim != (2 if "pos_boxes" in datasets else 3):
                    raise ValueError("image_features must be (images, regions, width), or (rows, width) beside pos_boxes")
                for name, row in self.index.items():
                    key = image_key(name)
                    if key not in skip:
                        yield self._image(key, row, datasets)
        except (OSError, ValueError, RuntimeError) as error:
            raise DataError(f"{path}: not features in HDF5, or damaged: {str(error).partition(chr(10))[0]}") from None

    def _image(self, key: str, row: int, datasets: dict[str, h5py.Dataset]) -> Record | Broken:
        features, ranges = datasets["image_features"], datasets.get("pos_boxes")
        images = len(features) if ranges is None else len(ranges)
        if not 0 <= row < images:
            return Broken(key, f"the index gives it row {row}, and there are {images}")
        if ranges is None:
            rows, size = row, features.nbytes // images
        else:
            first, last = (int(number) for number in ranges[row])
            if not 0 <= first <= last <= len(features):
                return Broken(key, f"pos_boxes gives it the rows {first} to {last}, and there are {len(features)}")
            rows, size = slice(first, last), (last - first) * features.shape[1] * features.dtype.itemsize
        if size > MOST_BYTES:
            return Broken(key, f"its features would be {size} bytes large")
        boxes = datasets["spatial_features"][rows][:, :4] if "spatial_features" in datasets else None
        return Record(key, features[rows], None if boxes is None else np.asarray(boxes, np.float32))


def read_index(path: Path) -> dict[str, int]:
    """Image id -> row. Raises DataError for a pickle, which is never opened, and for anything else that is no index."""
    if path.suffix in (".pkl", ".pickle"):
        raise DataError(
            f"{path}: a pickle could run any program and is not opened; write it as JSON once where you trust it:  "
            "json.dump({str(k): v for k, v in index.items()}, open('index.json', 'w'))"
        )
    try:
        index = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; index is a JSON file with the row of every image") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not JSON: {error}") from None
    if isinstance(index, list):
        index = {str(name): row for row, name in enumerate(index)}
    if not isinstance(index, dict) or not all(isinstance(row, int) for row in index.values()):
        raise DataError(f"{path}: must be a table of image id to row, or a list of image ids")
    return index
