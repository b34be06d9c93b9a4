"""The feature store: one HDF5 file with the features of many images, read an image at a time.

Everything lies end to end, image after image; `ends` says where each one's rows end:

    keys      (n,)        UTF-8     the images, in the order they were written
    ends      (n,)        int64     image i owns the rows ends[i-1]:ends[i] of the following
    features  (rows, D)   float16 or float32, in chunks of an image's size, compressed where that makes them smaller
    boxes     (rows, 4)   float32   x0, y0, x1, y1 relative to the image's size; NaN where unknown     (may be absent)
    scores    (rows,)     float32   the detector's confidence; NaN where unknown                       (may be absent)
    labels    (rows,)     int32     position in label_names; -1 where unknown                          (may be absent)
    label_names (m,)      UTF-8
    class_ids   (rows, k) int32     the surest classes: positions in class_names; -1 where unknown     (may be absent)
    class_probabilities (rows, k)   float32, of these classes; 0 where unknown
    class_names (C,)      UTF-8     all classes there are

with the attributes `format`, `version`, `fingerprint` (JSON: what made it); `mmgen.features.writer` writes it,
checksums and all."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DataError
from .stored_classes import CLASSES, declared
from .untrusted_hdf5 import MOST_BYTES, opened, own_dataset

if TYPE_CHECKING:
    import h5py
    import numpy as np

    from ..parts import Record
    from .classes import Classes
from .store_check import _short

FORMAT = "mmgen features"


VERSION = 1


PER_REGION = {"boxes": ("f", (4,)), "scores": ("f", ()), "labels": ("i", ())}  # kind of number, shape of a row


NAMES = (
    *("format", "version", "fingerprint", "keys", "ends", "features", *PER_REGION, "label_names"),
    *(*CLASSES, "class_names"),
)


IN_MEMORY = 128 << 20  # bytes up to which a file is read whole: slicing arrays is far quicker than asking HDF5


class FeatureStore:
    """The features of images by key. Holds keys and row numbers only; features are read from the file when asked for.

    A file of at most `in_memory` bytes is read whole at the first read. It can be pickled and forked: every process
    opens the file for itself, at its first read. Raises DataError when the file is missing, damaged, or something else.

    class_names  of all classes that its regions may be of; none where it does not tell
    top_classes  k, how many it keeps of a region
    """

    def __init__(self, path: str | Path, in_memory: int = IN_MEMORY) -> None:
        self.path, self.in_memory = Path(path), in_memory
        self._pid: int | None = None
        self._memory: dict[str, np.ndarray] | None = None
        self._open()

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "in_memory": self.in_memory}

    def __setstate__(self, state: dict[str, Any]) -> None:
        FeatureStore.__init__(self, **state)

    def __len__(self) -> int:
        return len(self.encoded_keys)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._find(key) is not None

    def __iter__(self) -> Iterator[str]:
        return (key.decode() for key in self.encoded_keys)

    def keys(self) -> Iterator[str]:
        """The images' keys, in the order they were written."""
        return iter(self)

    def read(self, key: str, limit: int | None = None) -> Record:
        """An image's record; of its regions the first `limit` only. Raises DataError when there is no such image."""
        place = self._find(key)
        if place is None:
            example = f", '{self.encoded_keys[0].decode()}' say" if len(self) else ""
            raise DataError(
                f"{self.path}: no features of image '{key}' among its {len(self)} images{example}; extract or import "
                "them, or leave the image out"
            )
        return self._record(key, place, limit)

    def count(self, key: str) -> int:
        """Regions of an image; 0 when there is no such image."""
        place = self._find(key)
        return 0 if place is None else int(self._ends[place] - (self._ends[place - 1] if place else 0))

    def records(self) -> Iterator[Record]:
        """All of them, in the order they were written; one at a time in memory."""
        for place, key in enumerate(self):
            yield self._record(key, place, None)

    def close(self) -> None:
        if self._pid == os.getpid():
            self._file.close()
        self._pid = None

    def describe(self) -> dict[str, Any]:
        """What people want to know of it: counts, width, what is stored, how large it is, what made it."""
        import numpy as np

        regions = np.diff(self._ends, prepend=0)
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
            "holds": [name for name in ("features", *PER_REGION, *CLASSES) if name in self._held],
            **({"classes": len(self.class_names)} if self.class_names else {}),
            "bytes": self.path.stat().st_size,
            "fingerprint": self.fingerprint,
        }

    def _record(self, key: str, place: int, limit: int | None) -> Record:
        from ..parts import Record

        first, last = int(self._ends[place - 1]) if place else 0, int(self._ends[place])
        last = last if limit is None else min(last, first + limit)
        if (last - first) * max(self.width, self.top_classes) * 4 > MOST_BYTES:
            raise DataError(f"{self.path}: image '{key}' would have {last - first} regions; the file is damaged")
        try:
            rows = {name: dataset[first:last] for name, dataset in self._rows().items()}
        except OSError as error:
            raise DataError(
                f"{self.path}: image '{key}' cannot be read: {_short(error)}; the file is damaged, make it again"
            ) from None
        boxes, scores, labels = (rows.get(name) for name in PER_REGION)
        return Record(
            key,
            rows["features"],
            None if boxes is None or _unknown(boxes) else boxes,
            None if labels is None or (labels < 0).any() else self._named(key, labels),
            None if scores is None or _unknown(scores) else scores,
            self._classes(key, rows) if self.class_names else None,
        )

    def _classes(self, key: str, rows: Mapping[str, np.ndarray]) -> Classes | None:
        """The classes of an image's regions; None where none is known of any."""
        from .classes import Classes

        classes = Classes(self.class_names, *(rows[name] for name in CLASSES))
        if why := classes.wrong(len(rows["features"])):
            raise DataError(f"{self.path}: image '{key}' has {why}; the file is damaged")
        return classes if classes.known.any() else None

    def _named(self, key: str, labels: np.ndarray) -> tuple[str, ...]:
        if labels.max(initial=-1) >= len(self._label_names):
            raise DataError(
                f"{self.path}: image '{key}' has a label of number {labels.max()}, and there are "
                f"{len(self._label_names)}; the file is damaged"
            )
        return tuple(self._label_names[label] for label in labels)

    def _find(self, key: str) -> int | None:
        import numpy as np

        wanted = np.bytes_(key.encode())
        place = int(np.searchsorted(self.encoded_keys, wanted, sorter=self._order))
        if place == len(self.encoded_keys) or self.encoded_keys[self._order[place]] != wanted:
            return None
        return int(self._order[place])

    def _datasets(self) -> dict[str, h5py.Dataset]:
        """The file's datasets, opened by this very process: a handle does not survive a fork."""
        if self._pid != os.getpid():
            self._open()
        return self._handles

    def _rows(self) -> Mapping[str, h5py.Dataset | np.ndarray]:
        """What to slice an image's rows from: arrays where the file is small, the file's datasets where it is not."""
        if self._memory is None:
            datasets = self._datasets()
            self._memory = {}
            if sum(dataset.nbytes for dataset in datasets.values()) <= self.in_memory:
                with contextlib.suppress(OSError):  # a damaged part is told of when the image it belongs to is wanted
                    self._memory = {name: dataset[:] for name, dataset in datasets.items()}
        return self._memory or self._datasets()

    def _open(self) -> None:
        import numpy as np

        if not self.path.is_file():
            raise DataError(
                f"{self.path}: no such file; features are made by `mmgen features extract` or `mmgen features import`"
            )
        try:
            self._file = opened(self.path, NAMES, seal=FORMAT)
            self._pid = os.getpid()
            self.fingerprint = self._attributes()
            self._held = ["features", *(name for name in (*PER_REGION, *CLASSES) if name in self._file)]
            self.encoded_keys, self._ends = self._index("keys", "S"), self._index("ends", "i")
            self._label_names = (
                [name.decode() for name in self._index("label_names", "S")] if "labels" in self._held else []
            )
            self._check()
            self.class_names, self.top_classes = declared(self._file)
            self._handles = {name: self._file[name] for name in self._held}
            self._memory = None
            self._order = np.argsort(self.encoded_keys, kind="stable")
            self._tell_apart()
        except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
            raise DataError(f"{self.path}: not a feature store, or damaged: {_short(error)}") from None

    def _tell_apart(self) -> None:
        """Keys are texts, and no two images have the same."""
        b"\n".join(self.encoded_keys.tolist()).decode()  # raises for what is no text
        ordered = self.encoded_keys[self._order]
        same = ordered[1:][ordered[1:] == ordered[:-1]]
        if len(same):
            raise ValueError(f"two images have the key '{same[0].decode()}'")

    def _attributes(self) -> dict[str, Any]:
        """The fingerprint, once the file has said that it is a store."""
        attributes = self._file.attrs
        if not isinstance(form := attributes.get("format"), str | bytes) or form not in (FORMAT, FORMAT.encode()):
            raise DataError(
                f"{self.path}: an HDF5 file, but no feature store; `mmgen features import` reads published layouts"
            )
        if attributes.get("version") != VERSION:
            raise DataError(
                f"{self.path}: a feature store of version {attributes.get('version')}; this mmgen reads version "
                f"{VERSION}"
            )
        fingerprint = json.loads(attributes["fingerprint"])
        if not isinstance(fingerprint, dict):
            raise ValueError("its fingerprint is no table")
        return fingerprint

    def _index(self, name: str, kind: str) -> np.ndarray:
        """A whole small dataset, its size checked before memory is taken."""
        if (dataset := self._dataset(name, kind, ())).nbytes > MOST_BYTES:
            raise ValueError(f"'{name}' is {dataset.nbytes} bytes large")
        return dataset[:]

    def _dataset(self, name: str, kind: str, row: tuple[int, ...]) -> h5py.Dataset:
        dataset = own_dataset(self._file, name)
        if dataset.dtype.kind != kind or dataset.ndim != 1 + len(row) or dataset.shape[1:] != row:
            raise ValueError(f"'{name}' is {dataset.dtype} of shape {dataset.shape}")
        return dataset

    def _check(self) -> None:
        """The datasets fit together. Sets `width`."""
        import numpy as np

        if not (shape := own_dataset(self._file, "features").shape) or not shape[-1]:
            raise ValueError(f"'features' are of shape {shape}")
        self.width = int(shape[-1])
        rows = len(self._dataset("features", "f", (self.width,)))
        for name in (name for name in PER_REGION if name in self._held):
            if len(self._dataset(name, *PER_REGION[name])) != rows:
                raise ValueError(f"'{name}' and 'features' differ in length")
        ends = np.concatenate([[0], self._ends])
        if len(self.encoded_keys) != len(self._ends) or (np.diff(ends) < 0).any() or ends[-1] != rows:
            raise ValueError("'keys', 'ends' and 'features' do not fit together")


def _unknown(values: np.ndarray) -> bool:
    return bool((values != values).any())  # NaN
