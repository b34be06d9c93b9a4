"""Write a feature store: records go to a journal beside it, `finish` assembles the HDF5 file; leftovers are deleted.

A kill at any moment loses at most the record that was being written; the next writer continues after the last complete
one. The file appears under its name only when it is complete.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DataError, RunError
from ..files import locked
from .fingerprints import difference
from .journal import Journal
from .layout import SAMPLE, Layout
from .row_writer import RowWriter
from .store import FORMAT, VERSION, FeatureStore
from .store_check import check

if TYPE_CHECKING:
    import h5py

    from ..parts import Record


SPARE_BYTES = 1 << 20  # by which a store may be larger than its journal


def remove_leftovers(path: Path) -> None:
    """Delete the journal and the lock that are left beside a store if its writer was killed after the store had got its
    name. A journal with further records stays, and so does one that another process writes."""
    path = path.resolve()
    if any(Path(f"{path}.{kind}").exists() for kind in ("partial", "lock")):
        with contextlib.closing(FeatureStore(path)) as store:
            fingerprint, dtype = store.fingerprint, store.describe()["dtype"]
        # a run that only reads goes on where the folder cannot be written
        with contextlib.suppress(DataError, RunError, OSError), StoreWriter(path, fingerprint, dtype):
            pass


class StoreWriter:
    """Writes the store at `path`. A context manager: `finish` creates the file; without `finish`, the journal stays.

        with StoreWriter(path, fingerprint) as writer:
            for record in records:
                writer.add(record)
            writer.finish()

    An existing store, partial or finished, is continued if its fingerprint and dtype are the same; otherwise the writer
    raises DataError. `busy`: called repeatedly while another process writes the store; without it, the writer raises
    DataError then.

    keys     the images in the store
    clipped  images whose boxes reached outside of the image and were clipped
    """

    def __init__(
        self,
        path: str | Path,
        fingerprint: Mapping[str, Any],
        dtype: str = "float16",
        busy: Callable[[], None] | None = None,
    ) -> None:
        self.path = Path(path)
        if self.path.is_symlink() and self.path.is_file():  # the link stays, and its file is replaced
            self.path = path = self.path.resolve()
        self.partial = Path(f"{path}.partial")
        self.purpose = {"fingerprint": json.loads(json.dumps(fingerprint)), "dtype": dtype}
        self.clipped = 0
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
            self._open.enter_context(locked(lock, self._when_busy(busy)))
            self._open.callback(lock.unlink, missing_ok=True)
            self._open_existing()
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
        """The number of records in the journal that are not in the store, into which `finish` moves them."""
        stored = self._finished or ()
        return sum(entry.key not in stored for entry in self._journal.entries)

    def add(self, record: Record) -> bool:
        """Add a record; False if its image is already in the store. Raises DataError for an invalid record: NaN or
        infinite numbers, a different width, invalid boxes."""
        if record.key in self.keys:
            return False
        checked, clipped = check(record, self.purpose["dtype"], self.width, self._class_names_and_count)
        self._journal.append(checked)
        self.width = checked.features.shape[1]
        self.keys.add(record.key)
        self.clipped += clipped
        return True

    @property
    def _class_names_and_count(self) -> tuple[tuple[str, ...], int] | None:
        """Class names, and the number of classes per region; None while no record has classes."""
        if self._finished and self._finished.class_names:
            return self._finished.class_names, self._finished.top_classes
        return self._journal.classes

    def finish(self, progress: Callable[[], None] = lambda: None) -> None:
        """Assemble the store; `progress` is called after each image. Raises DataError if there are no records, and
        RunError if the file cannot be written."""
        if not self.keys:
            self.partial.unlink()
            raise DataError(f"{self.path}: not created: no features to store")
        if self.waiting:
            assembling = self.path.with_name(f".{self.path.name}.assembling")
            try:
                self._check_disk_space()
                self._assemble_file(assembling, progress)
                assembling.replace(self.path)
            except (OSError, RuntimeError) as error:  # h5py raises both
                reason = str(error).partition("\n")[0]
                raise RunError(
                    f"{self.path}: cannot be written: {reason}; the features are saved in {self.partial}; re-run the "
                    "same command to continue"
                ) from None
            finally:
                assembling.unlink(missing_ok=True)
        self.partial.unlink()

    def _when_busy(self, wait: Callable[[], None] | None) -> Callable[[str], None]:
        """A function to call while another process holds the lock: waits, or raises DataError."""

        def busy(holder: str) -> None:
            if wait is not None:
                return wait()
            raise DataError(
                f"{self.path}: {holder or 'another process'} is writing this store; wait until that process ends (the "
                "same command then adds missing features), or write elsewhere"
            )

        return busy

    def _open_existing(self) -> None:
        """Open the existing store and journal, or start a new journal."""
        self._finished = FeatureStore(self.path) if self.path.exists() else None
        if self._finished:
            self._open.callback(self._finished.close)
            self.width = self._finished.width
            self._check_purpose(
                {"fingerprint": self._finished.fingerprint, "dtype": self._finished.describe()["dtype"]}, self.path
            )
        self._journal = Journal(self.partial, self.purpose)
        self._open.callback(self._journal.close)
        self._check_purpose(self._journal.purpose, self.partial)
        self._open.callback(self._delete_journal_of_stored)
        self.keys = {entry.key for entry in self._journal.entries} | set(self._finished or ())
        if self._journal.entries:
            self.width = self._journal.read(self._journal.entries[-1]).features.shape[1]

    def _delete_journal_of_stored(self) -> None:
        if not self.waiting:
            self.partial.unlink(missing_ok=True)

    def _check_purpose(self, stored: Mapping[str, Any], path: Path) -> None:
        for name, ours in self.purpose.items():
            if stored.get(name) != ours:
                raise DataError(
                    f"{path}: contains features with a different {name} ({difference(stored.get(name), ours)}); delete "
                    "the file, or write elsewhere"
                )

    def _records_to_store(self) -> Iterator[Record]:
        stored_keys: set[str] = set()
        if self._finished:
            stored_keys.update(self._finished)
            yield from self._finished.records()
        for entry in self._journal.entries:
            if (
                entry.key not in stored_keys
            ):  # a kill between renaming the store and deleting the journal leaves a record in both
                yield self._journal.read(entry)

    def _check_disk_space(self) -> None:
        """Raises OSError if the store might not fit on the disk, since HDF5 does not recover from a full disk."""
        needed = self.partial.stat().st_size + SPARE_BYTES + (self.path.stat().st_size if self._finished else 0)
        free = shutil.disk_usage(self.path.parent).free
        if free < needed:
            raise OSError(f"not enough disk space: up to {needed / 1e6:.0f} MB needed, {free / 1e6:.0f} MB free")

    def _assemble_file(self, path: Path, progress: Callable[[], None]) -> None:
        import h5py
        import numpy as np

        first = [record for record, _ in zip(self._records_to_store(), range(SAMPLE), strict=False)]
        with h5py.File(_new_file(path)) as file:
            attributes = {"format": FORMAT, "fingerprint": json.dumps(self.purpose["fingerprint"])}
            file.attrs.update({name: np.bytes_(text) for name, text in attributes.items()}, version=VERSION)
            assert self.width is not None  # there are records
            layout = Layout.choose(first, self.width, self.purpose["dtype"])
            rows = RowWriter(file, layout, self._class_names_and_count)
            for record in self._records_to_store():
                rows.add(record)
                progress()
            rows.close()


def _new_file(path: Path) -> h5py.h5f.FileID:
    """A new HDF5 file. It has the layout of 1.10, since older ones have no checksums, and libhdf5 may loop on damaged
    ones; and no time of change, which older h5py writes for the root, so that equal records make equal files."""
    import h5py

    access, creation = h5py.h5p.create(h5py.h5p.FILE_ACCESS), h5py.h5p.create(h5py.h5p.FILE_CREATE)
    access.set_libver_bounds(h5py.h5f.LIBVER_V110, h5py.h5f.LIBVER_LATEST)
    creation.set_obj_track_times(False)
    return h5py.h5f.create(bytes(path), h5py.h5f.ACC_TRUNC, fapl=access, fcpl=creation)
