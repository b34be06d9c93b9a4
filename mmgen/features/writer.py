"""Write a feature store: records are checked, collected, and written as one part after another.

A kill at any moment costs at most the records of a minute, and leaves a temporary file, which the next writer removes.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError, RunError
from ..files import locked, write_atomically
from ..parts import Record
from .fingerprints import differences
from .store import FORMAT, PARTS, UNKNOWN, FeatureStore, checksum

PART_BYTES, PART_SECONDS = 256 << 20, 60.0  # after so many bytes of features, or so long, a part is written


class StoreWriter:
    """Adds records to the store in the folder `path`. A context manager, which writes the rest at its end. Raises
    DataError if the store has other features, and RunError if it cannot be written.

        with StoreWriter(path, fingerprint) as writer:
            for record in records:
                writer.add(record)

    prefix  of the names of the parts: writers with different ones may fill one folder at the same time
    busy    called if another process writes parts with this prefix, whose end the writer waits for
    keys    the images in the store
    """

    def __init__(
        self,
        path: str | Path,
        fingerprint: Mapping[str, Any],
        dtype: str = "float16",
        prefix: str = "part",
        busy: Callable[[], object] = lambda: None,
    ) -> None:
        self.path, self.dtype, self.prefix, self.busy = Path(path), dtype, prefix, busy
        self.fingerprint = json.loads(json.dumps(fingerprint))
        self.keys: set[str] = set()
        self._like: Record | None = None  # as all others have to be
        self._records: list[Record] = []
        self._bytes, self._began = 0, time.monotonic()

    def __enter__(self) -> StoreWriter:
        with contextlib.ExitStack() as opened:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                opened.enter_context(locked(self.path / f".{self.prefix}.lock", self.busy))
                for left in self.path.glob(f".{self.prefix}-*partial"):
                    left.unlink()
            except OSError as error:
                raise RunError(f"{self.path}: cannot be written: {error.strerror}; name another folder") from None
            if any(self.path.glob(PARTS)):
                store = FeatureStore(self.path)
                ours = {**store.about, "dtype": self.dtype, "fingerprint": self.fingerprint}
                if changes := differences(store.about, ours):
                    raise DataError(f"{self.path}: has other features ({changes[0]}); delete them, or write elsewhere")
                self.keys = set(store)
                of_classes = (part.keys[0] for part in store.parts if part.class_names)
                self._like = store.read(next(of_classes, store.parts[0].keys[0]))
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        with self._opened:
            self.flush()

    def add(self, record: Record) -> bool:
        """Add a record; False if its image is already in the store. Raises DataError for an invalid record."""
        if record.key in self.keys:
            return False
        record = checked(record, self.dtype, self._like)
        if self._like is None or self._like.classes is None:
            self._like = record
        self.keys.add(record.key)
        self._records.append(record)
        self._bytes += record.features.nbytes
        if self._bytes > PART_BYTES or time.monotonic() - self._began > PART_SECONDS:
            self.flush()
        return True

    def flush(self) -> None:
        """Write the records that were added since the last part."""
        records, self._records = self._records, []
        self._bytes, self._began = 0, time.monotonic()
        if records:
            paths = (self.path / f"{self.prefix}-{number:05}.h5" for number in count())
            path = next(path for path in paths if not path.exists())
            write_atomically(path, lambda partial: self._write(partial, _datasets(records)))

    def _write(self, path: Path, datasets: Mapping[str, np.ndarray]) -> None:
        import h5py

        try:
            with h5py.File(path, "w", libver=("v110", "v110")) as file:  # older layouts have no checksums
                for name, values in sorted(datasets.items()):
                    file.create_dataset(name, data=values)
                fingerprint = np.bytes_(json.dumps(self.fingerprint))  # a str lies where HDF5 has no checksums
                attributes = {"format": np.bytes_(FORMAT), "fingerprint": fingerprint, "checksum": checksum(datasets)}
                file.attrs.update(attributes)
        except RuntimeError as error:  # h5py's, when the disk is full
            raise OSError(str(error)) from None


def _datasets(records: Sequence[Record]) -> dict[str, np.ndarray]:
    """The datasets of a part."""
    numbers: dict[str, int] = {}  # of label names
    classes = [record.classes for record in records]
    columns: dict[str, list[np.ndarray | None]] = {
        "boxes": [record.boxes for record in records],
        "scores": [record.scores for record in records],
        "labels": [
            None if names is None else np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int32)
            for names in (record.region_names for record in records)
        ],
        "class_ids": [known.ids.astype(np.int32) if known else None for known in classes],
        "class_probabilities": [known.probabilities.astype(np.float32) if known else None for known in classes],
    }
    lengths = [len(record.features) for record in records]
    datasets = {"features": np.concatenate([record.features for record in records]), "ends": np.cumsum(lengths)}
    for name, column in columns.items():
        if (some := next((values for values in column if values is not None), None)) is not None:
            absent = np.full((max(lengths), *some.shape[1:]), UNKNOWN[name], some.dtype)
            rows = [absent[:n] if v is None else v for v, n in zip(column, lengths, strict=True)]
            datasets[name] = np.concatenate(rows)
    texts: dict[str, Sequence[str]] = {"keys": [record.key for record in records], "label_names": [*numbers]}
    for known in filter(None, classes):
        texts["class_names"] = known.names
    return datasets | {name: np.frombuffer(json.dumps(text).encode(), np.uint8) for name, text in texts.items()}


def checked(record: Record, dtype: str, like: Record | None = None) -> Record:
    """The record as it is stored: finite numbers, boxes cut at the image's border. `like`: another record of the store.
    Raises DataError."""

    def require(condition: object, problem: str) -> None:
        if not condition:
            raise DataError(f"image '{record.key}': {problem}")

    regions, width = (*np.shape(record.features), 0, 0)[:2]
    width = like.features.shape[1] if like else width
    stored: dict[str, Any] = {}
    for name, shape in {"features": (regions, width), "boxes": (regions, 4), "scores": (regions,)}.items():
        if getattr(record, name) is not None:
            values, kind = np.asarray(getattr(record, name)), dtype if name == "features" else "float32"
            numbers = values.shape == shape and values.dtype.kind in "fiu"
            require(numbers, f"{name} must be numbers {shape}, not {values.dtype} {values.shape}")
            with np.errstate(over="ignore"):
                stored[name] = np.ascontiguousarray(values, kind)
            require(np.isfinite(stored[name]).all(), f"{name} are not finite, or too large for {kind}")
    if (boxes := stored.get("boxes")) is not None:
        require((boxes[:, :2] <= boxes[:, 2:]).all(), "a box has x0 > x1 or y0 > y1; boxes must be x0, y0, x1, y1")
        stored["boxes"] = boxes.clip(0, 1)
    named = regions if record.region_names is None else len(record.region_names)
    require(named == regions, f"got {named} region names for {regions} regions")
    if (classes := record.classes) is not None:
        other = like and like.classes or classes
        same = (other.names, other.ids.shape[1:]) == (classes.names, classes.ids.shape[1:])
        require(same, "the classes, or their number for each region, differ from those of earlier images")
        require(not (problem := classes.error(regions)), problem)
    return replace(record, **stored)
