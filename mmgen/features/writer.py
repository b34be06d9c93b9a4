"""Filling a feature store: records go to a journal beside it, and the HDF5 file is put together when all are there.

A kill at any moment loses at most the record that was being written; the next writer goes on after the last whole one.
The store appears under its name whole or not at all.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DataError, RunError
from ..files import locked, take_name
from .fingerprints import difference
from .journal import Journal
from .layout import TRIED, Layout, _Rows
from .store import FORMAT, VERSION, FeatureStore
from .store_check import check

if TYPE_CHECKING:
    from ..parts import Record


SPARE_BYTES = 1 << 20  # that a store may be larger than its journal


class StoreWriter:
    """Fills the store at `path`: a context manager; `finish` makes the file, leaving without it keeps the journal.

        with StoreWriter(path, fingerprint) as writer:
            for record in records:
                writer.add(record)
            writer.finish()

    What is there already, in a partial store or in a finished one, is gone on with when its fingerprint and dtype are
    the same, and refused with a DataError otherwise. `busy`: called again and again while another process fills it,
    instead of refusing with a DataError.

    keys        the images it holds
    duplicates  records that were not added because their image is there already
    clipped     images with boxes that reached outside and were cut to the image
    """

    def __init__(
        self,
        path: str | Path,
        fingerprint: Mapping[str, Any],
        dtype: str = "float16",
        busy: Callable[[], None] | None = None,
    ) -> None:
        self.path, self.partial = Path(path), Path(f"{path}.partial")
        self.purpose = {"fingerprint": json.loads(json.dumps(fingerprint)), "dtype": dtype}
        self.duplicates = self.clipped = 0
        self.keys: set[str] = set()
        self.width: int | None = None
        self._journal: Journal
        self._finished: FeatureStore | None = None
        if self.path.is_dir():
            raise DataError(f"{path}: is a folder; name a file in it, such as {self.path / 'features.h5'}")
        self._open = contextlib.ExitStack()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = Path(f"{path}.lock")
            self._open.enter_context(locked(lock, self._busy(busy)))
            self._open.callback(lock.unlink, missing_ok=True)
            self._begin()
        except OSError as error:
            self._open.close()
            raise RunError(f"{self.path}: cannot be written: {error.strerror}; write elsewhere") from None
        except BaseException:
            self._open.close()
            raise

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def waiting(self) -> int:
        """Records that are not in the store yet; `finish` puts them there."""
        return len(self._journal.entries)

    def add(self, record: Record) -> bool:
        """Keep a record; False when its image is there already. Raises DataError for one that cannot be stored: NaN or
        infinite numbers, another width, boxes that are none."""
        if record.key in self.keys:
            self.duplicates += 1
            return False
        checked, clipped = check(record, self.purpose["dtype"], self.width, self._classes)
        self._journal.append(checked)
        self.width = checked.features.shape[1]
        self.keys.add(record.key)
        self.clipped += clipped
        return True

    @property
    def _classes(self) -> tuple[tuple[str, ...], int] | None:
        """Names of the classes of regions, and how many of them a region has; None where there are none yet."""
        if self._finished and self._finished.class_names:
            return self._finished.class_names, self._finished.top_classes
        return self._journal.classes

    def finish(self, progress: Callable[[], None] = lambda: None) -> None:
        """Put the store together under its name; `progress` is called after every image. Raises DataError when there is
        nothing in it, or no room on the disk."""
        if not self.keys:
            self.partial.unlink()
            raise DataError(f"{self.path}: not made, there are no features to put into it")
        if self._journal.entries:
            assembling = self.path.with_name(f".{self.path.name}.assembling")
            try:
                self._find_room()
                self._assemble(assembling, progress)
                take_name(assembling, self.path)
            except (OSError, RuntimeError) as error:  # h5py raises both
                why = str(error).partition("\n")[0]
                raise RunError(
                    f"{self.path}: cannot be written: {why}; the features are kept in {self.partial}, and the same "
                    "command goes on from there"
                ) from None
            finally:
                assembling.unlink(missing_ok=True)
        self.partial.unlink()

    def _busy(self, wait: Callable[[], None] | None) -> Callable[[str], None]:
        """What is done while another process holds the lock."""

        def busy(holder: str) -> None:
            if wait is not None:
                return wait()
            raise DataError(
                f"{self.path}: {holder or 'another process'} is filling it; wait until it has ended (the same command "
                "then adds what is missing), or write elsewhere"
            )

        return busy

    def _begin(self) -> None:
        """Look at what is there."""
        self._finished = FeatureStore(self.path) if self.path.exists() else None
        if self._finished:
            self._open.callback(self._finished.close)
            self.width = self._finished.width
            self._same(
                {"fingerprint": self._finished.fingerprint, "dtype": self._finished.describe()["dtype"]}, self.path
            )
        self._journal = Journal(self.partial, self.purpose)
        self._open.callback(self._leave)
        self._same(self._journal.purpose, self.partial)
        self.keys = {entry.key for entry in self._journal.entries} | set(self._finished or ())
        if self._journal.entries:
            self.width = self._journal.read(self._journal.entries[-1]).features.shape[1]

    def _leave(self) -> None:
        self._journal.close()
        if not self._journal.entries:
            self.partial.unlink(missing_ok=True)

    def _same(self, there: Mapping[str, Any], path: Path) -> None:
        for name, ours in self.purpose.items():
            if there.get(name) != ours:
                raise DataError(
                    f"{path}: holds features of another {name} ({difference(there.get(name), ours)}); delete it, or "
                    "write elsewhere"
                )

    def _sources(self) -> Iterator[Record]:
        there: set[str] = set()
        if self._finished:
            there.update(self._finished)
            yield from self._finished.records()
        for entry in self._journal.entries:
            if (
                entry.key not in there
            ):  # both hold it when a kill came between naming the store and deleting the journal
                yield self._journal.read(entry)

    def _find_room(self) -> None:
        """Raises OSError when the store might not fit onto the disk: HDF5 does not come back from a full one."""
        needed = self.partial.stat().st_size + SPARE_BYTES + (self.path.stat().st_size if self._finished else 0)
        free = shutil.disk_usage(self.path.parent).free
        if free < needed:
            raise OSError(
                f"no room on the disk; it takes up to {needed / 1e6:.0f} MB, and {free / 1e6:.0f} MB are free"
            )

    def _assemble(self, path: Path, progress: Callable[[], None]) -> None:
        import h5py
        import numpy as np

        first = [record for record, _ in zip(self._sources(), range(TRIED), strict=False)]
        with h5py.File(
            path, "w", libver="v110"
        ) as file:  # older layouts have no checksums, and libhdf5 may loop where one is damaged
            about = {"format": FORMAT, "fingerprint": json.dumps(self.purpose["fingerprint"])}
            file.attrs.update({name: np.bytes_(text) for name, text in about.items()}, version=VERSION)
            assert self.width is not None  # there are records
            layout = Layout.choose(first, self.width, self.purpose["dtype"])
            rows = _Rows(file, layout, self._classes)
            for record in self._sources():
                rows.add(record)
                progress()
            rows.close()
