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
from collections.abc import Iterator
from itertools import accumulate, chain, count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import DataError
from ..parts import Record
from .classes import Classes
from .fingerprints import RANDOM, difference, is_random

FORMAT = b"mmgen features 2"
PARTS = "[!.]*.h5"
IN_MEMORY = 128 << 20  # stores of up to this many bytes are read completely: slicing arrays is far faster
UNKNOWN = {"boxes": np.nan, "scores": np.nan, "labels": -1, "class_ids": -1, "class_probabilities": 0}  # in a column


class Rows(NamedTuple):
    """Where a dataset lies in a file."""

    path: Path
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def read(self, first: int = 0, last: int | None = None) -> np.ndarray:
        """The rows first:last. Raises ValueError if the file ends before."""
        shape = ((self.shape[0] if last is None else last) - first, *self.shape[1:])
        offset = self.offset + first * math.prod(shape[1:]) * self.dtype.itemsize
        return np.fromfile(self.path, self.dtype, math.prod(shape), offset=offset).reshape(shape)


class Part:
    """One file of a store. HDF5 says where its datasets lie, and their rows are read without it: so no file stays open,
    and a store can be pickled and forked. Raises DataError for a file that is damaged, or no part of a store.

    about  what all parts of a store share: width, dtype and fingerprint of the features
    """

    def __init__(self, path: Path, small: bool) -> None:
        import h5py

        self.path, self.small = path, small
        self._memory: dict[str, np.ndarray] = {}
        try:
            with h5py.File(path, "r", locking="best-effort") as file:
                layout = file.id.get_create_plist().get_version()[0]  # older ones have no checksums of what is where
                if layout < 2 or file.attrs.get("format") != FORMAT:
                    raise ValueError("another format")
                fingerprint, self.checksum = json.loads(file.attrs["fingerprint"]), int(file.attrs["checksum"])
                self.datasets = {name.decode(): _place(path, file, name) for name in sorted(file.id)}
            self.keys, self.label_names, self.class_names = map(self._texts, ("keys", "label_names", "class_names"))
            self.ends = self.datasets["ends"].read()
            _, _, (total, width), dtype = self.datasets["features"]
            self.about: dict[str, Any] = {"width": width, "dtype": str(dtype), "fingerprint": dict(fingerprint)}
            self.rows = {name: self.datasets[name] for name in ("features", *UNKNOWN) if name in self.datasets}
            lengths = np.diff(self.ends, prepend=0)
            sizes = {int(lengths.sum()), *(rows.shape[0] for rows in self.rows.values())}
            if len(lengths) != len(self.keys) or (lengths < 0).any() or sizes != {total}:
                raise ValueError("its datasets do not match")
        except (OSError, RuntimeError, LookupError, ValueError, TypeError) as error:
            reason = str(error).partition("\n")[0]
            raise DataError(
                f"{path}: not a part of a feature store, or damaged ({reason}); create it again; published "
                "features are converted by `mmgen features import`"
            ) from None

    def _texts(self, name: str) -> tuple[str, ...]:
        return tuple(map(str, json.loads(self.datasets[name].read().tobytes()))) if name in self.datasets else ()

    def span(self, place: int) -> tuple[int, int]:
        """The first row of an image, and the row after its last."""
        return int(self.ends[place - 1]) if place else 0, int(self.ends[place])

    def record(self, place: int, limit: int | None) -> Record:
        """The record of an image, with at most the first `limit` regions."""
        first, last = self.span(place)
        last = last if limit is None else min(last, first + limit)
        try:
            if self.small and not self._memory:
                self._memory = {name: rows.read() for name, rows in self.rows.items()}
            read = {name: values[first:last] for name, values in self._memory.items()}
            read = read or {name: rows.read(first, last) for name, rows in self.rows.items()}
            boxes, scores = (
                None if values is None or np.isnan(values).any() else values
                for values in map(read.get, ("boxes", "scores"))
            )
            labels = read.get("labels", np.array([-1]))
            names = None if (labels < 0).any() else tuple(self.label_names[label] for label in labels.tolist())
            classes = None
            if self.class_names:
                classes = Classes(self.class_names, read["class_ids"], read["class_probabilities"])
        except (OSError, LookupError, ValueError, TypeError) as error:
            raise DataError(f"{self.path}: image '{self.keys[place]}' is damaged: {error}; create it again") from None
        return Record(
            self.keys[place],
            read["features"],
            boxes,
            names,
            scores,
            classes if classes and classes.known.any() else None,
        )

    def check(self) -> None:
        """Raises DataError if the bytes of the datasets have changed since the file was written."""
        found = 0
        for rows in self.datasets.values():
            found = zlib.crc32(rows.read().tobytes(), found)
        if found != self.checksum:
            raise DataError(
                f"{self.path}: damaged, its checksum differs; copy the file again, or delete and extract it"
            )


def _place(path: Path, file: Any, name: bytes) -> Rows:
    """Where a dataset lies: in one piece, unpacked, in the file itself. Raises ValueError for any other, so that
    reading takes no more memory than the file has bytes, and runs nothing."""
    import h5py

    if file.id.links.get_info(name).type != h5py.h5l.TYPE_HARD:
        raise ValueError(f"'{name.decode()}' is a link")
    dataset = h5py.h5d.open(file.id, name)  # an h5py.Dataset takes four times as long
    offset, shape, dtype = dataset.get_offset(), dataset.shape, dataset.dtype
    size = math.prod(shape) * dtype.itemsize
    if dtype.kind not in "fiu" or size and (offset is None or offset + size > path.stat().st_size):
        raise ValueError(f"'{name.decode()}' is not stored as numbers, in one piece, in the file")
    return Rows(path, offset or 0, shape, dtype)


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
        small = sum(file.stat().st_size for file in files) <= IN_MEMORY
        self.parts = [Part(file, small) for file in files]
        self.about = self.parts[0].about
        self.width, self.fingerprint = self.about["width"], self.about["fingerprint"]
        self.class_names = next((part.class_names for part in self.parts if part.class_names), ())
        for part in self.parts:
            others = part.class_names not in ((), self.class_names)
            if changes := difference(part.about, self.about) or "class names" * others:
                raise DataError(f"{part.path}: made differently than {files[0]} ({changes}); use one extractor")
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
        if key not in self._places:
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
            "images without regions": int((regions == 0).sum()),
            "holds": list(dict.fromkeys(name for part in self.parts for name in part.rows)),
            "bytes": sum(part.path.stat().st_size for part in self.parts),
            **({"classes": len(self.class_names)} if self.class_names else {}),
            **({"weights": RANDOM} if is_random(self.fingerprint) else {}),
            **self.about,
        }
