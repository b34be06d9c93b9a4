"""The feature store: one HDF5 file with the features of many images, read image by image.

The rows of all images are concatenated; `ends` says where the rows of each image end:

    keys      (n,)        UTF-8     the images, in the order they were written
    ends      (n,)        int64     image i owns the rows ends[i-1]:ends[i] of the following
    features  (rows, D)   float16 or float32, one chunk per image, compressed if that saves enough
    boxes     (rows, 4)   float32   x0, y0, x1, y1 relative to the image's size; NaN where unknown     (may be absent)
    scores    (rows,)     float32   the detector's confidence; NaN where unknown                       (may be absent)
    labels    (rows,)     int32     index into label_names; -1 where unknown                          (may be absent)
    label_names (m,)      UTF-8
    class_ids   (rows, k) int32     the top-k classes: indices into class_names; -1 where unknown     (may be absent)
    class_probabilities (rows, k)   float32, of these classes; 0 where unknown
    class_names (C,)      UTF-8     all classes

Attributes: `format`, `version`, `fingerprint` (JSON: the extractor and its settings). `mmgen.features.writer` writes
the file, with checksums."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DataError
from ..files import foreign
from .fingerprints import RANDOM, is_random
from .stored_classes import CLASSES, read_class_names
from .untrusted_hdf5 import MOST_BYTES, local_dataset, open_hdf5

if TYPE_CHECKING:
    import h5py
    import numpy as np

    from ..parts import Record
    from .classes import Classes

FORMAT = "mmgen features"


VERSION = 1


PER_REGION = {"boxes": ("f", (4,)), "scores": ("f", ()), "labels": ("i", ())}  # kind of dtype, shape of a row


NAMES = (
    *("format", "version", "fingerprint", "keys", "ends", "features", *PER_REGION, "label_names"),
    *(*CLASSES, "class_names"),
)


IN_MEMORY = 128 << 20  # files up to this many bytes are read completely: slicing arrays is far faster than reading HDF5


class FeatureStore:
    """The features of images by key. Keys and row numbers are in memory; features are read from the file on demand.

    A file of at most `in_memory` bytes is read completely at the first read. A store can be pickled and forked: each
    process opens the file at its first read. Raises DataError if the file is missing, damaged, or not a feature store.

    class_names  names of all classes of the regions; empty if the store has no classes
    top_classes  k, the number of classes saved per region
    """

    def __init__(self, path: str | Path, in_memory: int = IN_MEMORY) -> None:
        self.path, self.in_memory = Path(path), in_memory
        self._pid: int | None = None
        self._memory: dict[str, np.ndarray] | None = None
        self._open_file()

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "in_memory": self.in_memory}

    def __setstate__(self, state: dict[str, Any]) -> None:
        FeatureStore.__init__(self, **state)

    def __len__(self) -> int:
        return len(self.encoded_keys)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._find_place(key) is not None

    def __iter__(self) -> Iterator[str]:
        return (key.decode() for key in self.encoded_keys)

    def keys(self) -> Iterator[str]:
        """The keys of the images, in the order they were written."""
        return iter(self)

    def read(self, key: str, limit: int | None = None) -> Record:
        """The record of an image, with at most the first `limit` regions. Raises DataError for an unknown key."""
        place = self._find_place(key)
        if place is None:
            example = f" (for example '{self.encoded_keys[0].decode()}')" if len(self) else ""
            raise DataError(
                f"{self.path}: no features for image '{key}'; the store has {len(self)} images{example}; extract or "
                "import the missing features, or leave the image out"
            )
        return self.record(key, *self._rows_of(place), limit)

    def count(self, key: str) -> int:
        """The number of regions of an image; 0 for an unknown key."""
        place = self._find_place(key)
        return 0 if place is None else int(self.ends[place] - (self.ends[place - 1] if place else 0))

    def records(self) -> Iterator[Record]:
        """All records, in the order they were written, one at a time in memory."""
        for place, key in enumerate(self):
            yield self.record(key, *self._rows_of(place), None)

    def close(self) -> None:
        if self._pid == os.getpid():
            self._file.close()
        self._pid = None

    def describe(self) -> dict[str, Any]:
        """A summary of the store: counts, width, datasets, size in bytes, fingerprint."""
        import numpy as np

        regions = np.diff(self.ends, prepend=0)
        features = self._datasets()["features"]
        return {
            "path": str(self.path),
            "images": len(self),
            "regions": int(regions.sum()),
            "regions per image": [int(regions.min()), round(float(regions.mean()), 1), int(regions.max())]
            if len(self)
            else [0, 0.0, 0],
            "images without regions": int((regions == 0).sum()),
            "width": self.width,
            "dtype": str(features.dtype),
            "compression": features.compression or "none",
            "holds": [name for name in ("features", *PER_REGION, *CLASSES) if name in self._dataset_names],
            **({"classes": len(self.class_names)} if self.class_names else {}),
            "bytes": self.path.stat().st_size,
            **({"weights": RANDOM} if is_random(self.fingerprint) else {}),
            "fingerprint": self.fingerprint,
        }

    def _rows_of(self, place: int) -> tuple[int, int]:
        return int(self.ends[place - 1]) if place else 0, int(self.ends[place])

    def record(self, key: str, first: int, last: int, limit: int | None = None) -> Record:
        """The record of an image whose rows are known, with at most the first `limit` regions."""
        from ..parts import Record

        last = last if limit is None else min(last, first + limit)
        if (last - first) * max(self.width, self.top_classes) * 4 > MOST_BYTES:
            raise DataError(f"{self.path}: image '{key}' would have {last - first} regions; the file is damaged")
        try:
            rows = {name: dataset[first:last] for name, dataset in self._row_arrays().items()}
        except OSError as error:
            raise DataError(
                f"{self.path}: image '{key}' cannot be read: {_show_error(error)}; the file is damaged; create it again"
            ) from None
        boxes, scores, name_ids = (rows.get(name) for name in PER_REGION)
        return Record(
            key,
            rows["features"],
            None if boxes is None or _has_nan(boxes) else boxes,
            None if name_ids is None or (name_ids < 0).any() else self._region_names(key, name_ids),
            None if scores is None or _has_nan(scores) else scores,
            self._read_classes(key, rows) if self.class_names else None,
        )

    def _read_classes(self, key: str, rows: Mapping[str, np.ndarray]) -> Classes | None:
        """The classes of an image's regions; None if no class is known."""
        from .classes import Classes

        classes = Classes(self.class_names, *(rows[name] for name in CLASSES))
        if error := classes.error(len(rows["features"])):
            raise DataError(f"{self.path}: image '{key}': {error}; the file is damaged")
        return classes if classes.known.any() else None

    def _region_names(self, key: str, name_ids: np.ndarray) -> tuple[str, ...]:
        if name_ids.max(initial=-1) >= len(self._label_names):
            raise DataError(
                f"{self.path}: image '{key}' has label {name_ids.max()}, but there are only "
                f"{len(self._label_names)} label names; the file is damaged"
            )
        return tuple(self._label_names[name_id] for name_id in name_ids)

    def _find_place(self, key: str) -> int | None:
        import numpy as np

        encoded_key = np.bytes_(key.encode())
        place = int(np.searchsorted(self.encoded_keys, encoded_key, sorter=self._order))
        if place == len(self.encoded_keys) or self.encoded_keys[self._order[place]] != encoded_key:
            return None
        return int(self._order[place])

    def _datasets(self) -> dict[str, h5py.Dataset]:
        """The datasets of the file, opened by this process, since a handle does not survive a fork."""
        if self._pid != os.getpid():
            self._open_file()
        return self._handles

    def _row_arrays(self) -> Mapping[str, h5py.Dataset | np.ndarray]:
        """Arrays by name to slice rows from: in memory for a small file, the datasets of the file for a large one."""
        if self._memory is None:
            datasets = self._datasets()
            self._memory = {}
            if sum(dataset.nbytes for dataset in datasets.values()) <= self.in_memory:
                with contextlib.suppress(OSError):  # a damaged part is reported when its image is read
                    self._memory = {name: dataset[:] for name, dataset in datasets.items()}
        return self._memory or self._datasets()

    def _open_file(self) -> None:
        if not self.path.is_file():
            raise DataError(
                f"{self.path}: no such file; create features with `mmgen features extract` or `mmgen features import`"
            )
        try:
            if what := foreign(self.path):
                raise DataError(f"{self.path}: {_import_advice(self.path) or what}")
            self._file = open_hdf5(self.path, NAMES, seal=FORMAT)
            self._pid = os.getpid()
            self.fingerprint = self._read_attributes()
            self._dataset_names = ["features", *(name for name in (*PER_REGION, *CLASSES) if name in self._file)]
            self._label_names = (
                [name.decode() for name in self._read_small_dataset("label_names", "S")]
                if "labels" in self._dataset_names
                else []
            )
            self._check_rows()
            self._read_index()
            self.class_names, self.top_classes = read_class_names(self._file)
            self._handles = {name: self._file[name] for name in self._dataset_names}
            self._memory = None
        except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
            reason = _import_advice(self.path) or f"not a feature store, or damaged: {_show_error(error)}"
            raise DataError(f"{self.path}: {reason}") from None

    def _read_index(self) -> None:
        """Read the keys, and where the rows of each image end. Raises ValueError."""
        import numpy as np

        self.encoded_keys, self.ends = self._read_small_dataset("keys", "S"), self._read_small_dataset("ends", "i")
        ends = np.concatenate([[0], self.ends])
        if len(self.encoded_keys) != len(self.ends) or (np.diff(ends) < 0).any() or ends[-1] != self._row_count:
            raise ValueError("the sizes of 'keys', 'ends' and 'features' do not match")
        self._order = np.argsort(self.encoded_keys, kind="stable")
        self._check_keys()

    def _check_keys(self) -> None:
        """Raises ValueError for keys that are not UTF-8, and for duplicate keys."""
        try:
            b"\n".join(self.encoded_keys.tolist()).decode()
        except UnicodeDecodeError:
            raise ValueError("'keys' is not valid UTF-8") from None
        ordered = self.encoded_keys[self._order]
        duplicates = ordered[1:][ordered[1:] == ordered[:-1]]
        if len(duplicates):
            raise ValueError(f"duplicate key '{duplicates[0].decode()}'")

    def _read_attributes(self) -> dict[str, Any]:
        """The fingerprint, after a check of the format and the version."""
        attributes = self._file.attrs
        if not isinstance(form := attributes.get("format"), str | bytes) or form not in (FORMAT, FORMAT.encode()):
            raise DataError(
                f"{self.path}: an HDF5 file, but not a feature store; convert published features with `mmgen features "
                "import`"
            )
        if attributes.get("version") != VERSION:
            raise DataError(
                f"{self.path}: feature store of version {attributes.get('version')}, but this mmgen reads version "
                f"{VERSION}; create the features again"
            )
        fingerprint: Any = None
        with contextlib.suppress(ValueError, TypeError, RecursionError):
            fingerprint = json.loads(attributes["fingerprint"])
        if not isinstance(fingerprint, dict):
            raise ValueError("'fingerprint' must be a JSON object")
        return fingerprint

    def _read_small_dataset(self, name: str, kind: str) -> np.ndarray:
        """A small dataset as an array; its size is checked before memory is allocated."""
        if (dataset := self._check_dataset(name, kind, ())).nbytes > MOST_BYTES:
            raise ValueError(f"'{name}' needs {dataset.nbytes} bytes, more than {MOST_BYTES}")
        return dataset[:]

    def _check_dataset(self, name: str, kind: str, row: tuple[int, ...]) -> h5py.Dataset:
        dataset = local_dataset(self._file, name)
        if dataset.dtype.kind != kind or dataset.ndim != 1 + len(row) or dataset.shape[1:] != row:
            raise ValueError(f"'{name}' is {dataset.dtype} of shape {dataset.shape}")
        return dataset

    def _check_rows(self) -> None:
        """Check that the sizes of the datasets match, and set `width`."""
        if not (shape := local_dataset(self._file, "features").shape) or not shape[-1]:
            raise ValueError(f"'features' has shape {shape}; expected (rows, width)")
        self.width = int(shape[-1])
        self._row_count = rows = len(self._check_dataset("features", "f", (self.width,)))
        for name in (name for name in PER_REGION if name in self._dataset_names):
            if len(self._check_dataset(name, *PER_REGION[name])) != rows:
                raise ValueError(f"'{name}' and 'features' differ in length")


def _has_nan(values: np.ndarray) -> bool:
    return bool((values != values).any())  # NaN


def _import_advice(path: Path) -> str:
    """What to do with a file of published features, by its name; "" for any other file."""
    from ..configs import ExtractorConfig
    from ..registry import installed

    for part in installed().parts:
        if issubclass(part.config, ExtractorConfig) and path.name.endswith(part.config.endings):
            store = path.with_name(f"{path.name.partition('.')[0]}.h5")
            command = f"mmgen features import {path} {store} --type {part.name}"
            return f"published features, not a feature store; convert them with `{command}`"
    return ""


def _show_error(error: Exception) -> str:
    text = error.args[0] if isinstance(error, KeyError) and error.args else error
    return str(text).strip().partition("\n")[0]
