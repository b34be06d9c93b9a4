"""The feature store: a folder of parts, each one an HDF5 file with the features of some images. Reading.

A part is written at once, under its final name, and never changes: what is there is complete, and several writers may
fill one folder (`mmgen.features.writer`). Its datasets are contiguous; image i owns the rows ends[i-1]:ends[i]:

    keys      UTF-8               a JSON list: the images, in the order they were written
    ends      (n,)        int64
    features  (rows, D)   float16 or float32
    boxes     (rows, 4)   float32 x0, y0, x1, y1 relative to the image's size; NaN where unknown        (may be absent)
    scores    (rows,)     float32 the detector's confidence; NaN where unknown                          (may be absent)
    labels    (rows,)     int32   index into label_names, a list as keys; -1 where unknown              (may be absent)
    class_ids (rows, k)   int32   the top-k classes: index into class_names, a list as keys; -1: unknown    (the same)
    class_probabilities (rows, k) float32 of these classes; 0 where unknown

Attributes: `format`, `fingerprint` (JSON: the extractor and its settings), `checksum` (CRC-32 of the datasets' bytes,
in the order of their names).
"""

from __future__ import annotations

import json
import math
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import accumulate, chain, count
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError
from ..parts import Record
from .classes import Classes
from .fingerprints import RANDOM, differences, is_random

FORMAT = b"mmgen features 2"
PARTS = "[!.]*.h5"
UNKNOWN = {"boxes": np.nan, "scores": np.nan, "labels": -1, "class_ids": -1, "class_probabilities": 0}  # in a column


class Part:
    """One file of a store. HDF5 says where its datasets lie, and the file is mapped into memory: so none stays open,
    and a store can be pickled and forked. Raises DataError for a file that is damaged, or no part of a store.

    about  what all parts of a store share: width, dtype and fingerprint of the features
    """

    def __init__(self, path: Path) -> None:
        import h5py

        self.path = path
        try:
            with h5py.File(path, "r", locking="best-effort") as file:
                layout = file.id.get_create_plist().get_version()[0]  # older ones have no checksums of what is where
                if layout < 2 or file.attrs.get("format") != FORMAT:
                    raise ValueError("another format")
                fingerprint, self.checksum = json.loads(file.attrs["fingerprint"]), int(file.attrs["checksum"])
                content = np.memmap(path, mode="r")
                self.datasets = {name.decode(): _dataset(content, file, name) for name in sorted(file.id)}
            self.keys, self.label_names, self.class_names = map(self._texts, ("keys", "label_names", "class_names"))
            self.ends = self.datasets["ends"]
            self.rows = {name: self.datasets[name] for name in ("features", *UNKNOWN) if name in self.datasets}
            total, width = self.rows["features"].shape
            self.about: dict[str, Any] = {
                "width": width,
                "dtype": str(self.rows["features"].dtype),
                "fingerprint": dict(fingerprint),
            }
            lengths = np.diff(self.ends, prepend=0)
            sizes = {int(lengths.sum()), *map(len, self.rows.values())}
            if len(lengths) != len(self.keys) or (lengths < 0).any() or sizes != {total}:
                raise ValueError("its datasets do not match")
        except (OSError, RuntimeError, LookupError, ValueError, TypeError, OverflowError) as error:
            reason = str(error).partition("\n")[0]
            raise DataError(
                f"{path}: not a part of a feature store, or damaged ({reason}); create it again; published "
                "features are converted by `mmgen features import`"
            ) from None

    def _texts(self, name: str) -> tuple[str, ...]:
        return tuple(map(str, json.loads(self.datasets[name].tobytes()))) if name in self.datasets else ()

    def span(self, place: int) -> tuple[int, int]:
        """The first row of an image, and the row after its last."""
        return int(self.ends[place - 1]) if place else 0, int(self.ends[place])

    def record(self, place: int, limit: int | None) -> Record:
        """The record of an image, with at most the first `limit` regions."""
        first, last = self.span(place)
        rows = {name: values[first:last][:limit] for name, values in self.rows.items()}
        boxes, scores = (
            None if (values := rows.get(name)) is None or np.isnan(values).any() else values
            for name in ("boxes", "scores")
        )
        names, classes = None, None
        try:
            if (labels := rows.get("labels")) is not None and (labels >= 0).all():
                names = tuple(self.label_names[label] for label in labels.tolist())
            if self.class_names:
                classes = Classes(self.class_names, rows["class_ids"], rows["class_probabilities"])
                classes = classes if classes.known.any() else None
        except (LookupError, ValueError, TypeError) as error:
            raise DataError(f"{self.path}: image '{self.keys[place]}' is damaged: {error}; create it again") from None
        return Record(self.keys[place], rows["features"], boxes, names, scores, classes)

    def check(self) -> None:
        """Raises DataError if the bytes of the datasets have changed since the file was written."""
        if checksum(self.datasets) != self.checksum:
            raise DataError(
                f"{self.path}: damaged, its checksum differs; copy the file again, or delete and extract it"
            )


def checksum(datasets: Mapping[str, np.ndarray]) -> int:
    """CRC-32 of the bytes of all datasets, in the order of their names."""
    crc = 0
    for _, values in sorted(datasets.items()):
        crc = zlib.crc32(values.reshape(-1).view(np.uint8).data, crc)
    return crc


def _dataset(content: np.ndarray, file: Any, name: bytes) -> np.ndarray:
    """A dataset that lies in one piece, unpacked, in the file itself. Raises ValueError for any other, so that reading
    takes no more memory than the file has bytes, and runs nothing."""
    import h5py

    if file.id.links.get_info(name).type != h5py.h5l.TYPE_HARD:
        raise ValueError(f"'{name.decode()}' is a link")
    dataset = h5py.h5d.open(file.id, name)  # an h5py.Dataset takes four times as long
    offset, count = dataset.get_offset(), math.prod(dataset.shape)
    if dataset.dtype.kind not in "fiu" or (count and offset is None):
        raise ValueError(f"'{name.decode()}' is not stored as numbers, in one piece, in the file")
    return np.frombuffer(content, dataset.dtype, count, offset or 0).reshape(dataset.shape)


class FeatureStore:
    """The features of images by key. `path`: a folder of parts, or one part. Keys are in memory, and features are read
    on demand. Raises DataError if there are none, or for parts that are damaged or made differently.

    class_names  names of all classes of the regions; empty if the store has no classes
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        files = sorted(self.path.glob(PARTS)) if self.path.is_dir() else [self.path] * self.path.is_file()
        if not files:
            advice = "create them with `mmgen features extract` or `mmgen features import`"
            raise DataError(f"{path}: no features; {advice}")
        self.parts = [Part(file) for file in files]
        self.about = self.parts[0].about
        self.width, self.fingerprint = self.about["width"], self.about["fingerprint"]
        self.class_names = next((part.class_names for part in self.parts if part.class_names), ())
        for part in self.parts:
            others = part.class_names not in ((), self.class_names)
            if changes := differences(self.about, part.about) or ["class names"] * others:
                raise DataError(f"{part.path}: made differently than {files[0]} ({changes[0]}); use one extractor")
        self._starts = [*accumulate((len(part.keys) for part in self.parts), initial=0)]
        keys = chain.from_iterable(part.keys for part in self.parts)
        self._places = dict(zip(keys, count(), strict=False))  # quick for half a million

    def __reduce__(self) -> tuple[type[FeatureStore], tuple[Path]]:
        return FeatureStore, (self.path,)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[str]:
        """The keys of the images, in the order they were written."""
        return iter(self._places)

    def read(self, key: str, limit: int | None = None) -> Record:
        """The record of an image, with at most the first `limit` regions. Raises DataError for an unknown key."""
        if key not in self._places:
            raise DataError(
                f"{self.path}: no features for image '{key}'; the store has {len(self)} images (for example "
                f"'{next(iter(self), '')}'); extract or import the missing features, or leave the image out"
            )
        part, place = self._find(key)
        return part.record(place, limit)

    def count(self, key: str) -> int:
        """The number of regions of an image; 0 for an unknown key."""
        if key not in self:
            return 0
        part, place = self._find(key)
        first, last = part.span(place)
        return last - first

    def _find(self, key: str) -> tuple[Part, int]:
        """The part that has an image, and its place there."""
        number = self._places[key]
        part = bisect_right(self._starts, number) - 1
        return self.parts[part], number - self._starts[part]

    def describe(self) -> dict[str, Any]:
        """A summary of the store: counts, datasets, size in bytes, width, fingerprint."""
        regions = np.concatenate([np.diff(part.ends, prepend=0) for part in self.parts])
        return {
            "path": str(self.path),
            "images": len(self),
            "regions per image": [int(regions.min()), round(float(regions.mean()), 1), int(regions.max())],
            "holds": list(dict.fromkeys(name for part in self.parts for name in part.rows)),
            "bytes": sum(part.path.stat().st_size for part in self.parts),
            **({"weights": RANDOM} if is_random(self.fingerprint) else {}),
            "classes": len(self.class_names),
            **self.about,
        }
