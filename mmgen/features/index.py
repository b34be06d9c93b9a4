"""The index of a store in many files: written once, mapped into memory; finds the file and rows of any image.

The index is a file beside the stores: a line with a checksum of all that follows it and with JSON, padded to a
multiple of 64 bytes, and three arrays:

    keys   (n,)  UTF-8 of `width` bytes: the images, in the order of the files and in each as they were written
    ends   (n,)  int64: where the rows of an image end in its file
    order  (n,)  int64: the places of the keys in sorted order

Files are opened when an image of theirs is read, a few at a time.
"""

from __future__ import annotations

import bisect
import itertools
import json
import re
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ..errors import DataError, regular
from ..files import write_atomically
from .multi_file import MultiFileStore, check_match, files_of
from .store import FeatureStore

if TYPE_CHECKING:
    import numpy as np

    from ..parts import Record

MAGIC = b"mmgen index 2 "
CHECKSUM = len(MAGIC) + 9  # first byte behind the checksum, 8 digits and a blank
ALIGNED = 64
LONGEST_LINE = 64 << 20
OPEN = 128  # files at a time
CHECKED = 1 << 20  # keys that are compared at a time


def index_path(path: Path) -> Path:
    """The file of the index of a folder or a pattern."""
    if path.is_dir():
        return path / ".features.index"
    return path.with_name(f".{re.sub(r'[^-.0-9A-Za-z]', '_', path.name)}.index")


def has_index(path: Path) -> bool:
    return not path.is_file() and index_path(path).exists()


def write_index(path: Path) -> int:
    """Write the index of the stores of a folder or a pattern; the number of images. Raises DataError for stores that
    do not belong together, and for an image in two of them."""
    import numpy as np

    files = files_of(path)
    if files is None:
        raise DataError(f"{path}: is one file; an index is for a folder or a pattern, such as regions/*.h5")
    first: FeatureStore | None = None
    class_names: tuple[str, ...] = ()
    keys, ends = list[np.ndarray](), list[np.ndarray]()
    for file in files:
        store = FeatureStore(file, in_memory=0)
        first = first or store
        check_match(store, first, class_names)
        class_names = class_names or store.class_names
        keys.append(store.encoded_keys)
        ends.append(store.ends)
        store.close()
    assert first is not None  # `files_of` raises where there are none
    all_keys = np.concatenate(keys)
    order = np.argsort(all_keys, kind="stable").astype(np.int64)
    ordered = all_keys[order]
    if duplicates := np.flatnonzero(ordered[1:] == ordered[:-1]).tolist():
        raise DataError(f"{path}: image '{ordered[duplicates[0]].decode()}' is in two files; each must be in one")
    header = {
        "files": [[file.name, *_size_and_time(file)] for file in files],
        "counts": [len(part) for part in keys],
        "key": all_keys.dtype.itemsize,
        "width": first.width,
        "class_names": class_names,
        "fingerprint": first.fingerprint,
    }
    line = json.dumps(header).encode()
    line += b" " * (-(CHECKSUM + len(line) + 1) % ALIGNED) + b"\n"

    def write(partial: Path) -> None:
        with partial.open("w+b") as out:
            out.write(bytes(CHECKSUM) + line)
            for array in (all_keys, np.concatenate(ends).astype(np.int64), order):
                out.write(array.tobytes())
                out.write(bytes(-out.tell() % ALIGNED))
            checksum = _checksum(out)
            out.seek(0)
            out.write(MAGIC + checksum + b" ")

    write_atomically(index_path(path), write)
    return len(all_keys)


def _checksum(file: BinaryIO) -> bytes:
    """CRC-32 of everything behind the place of the checksum, as 8 digits."""
    file.seek(CHECKSUM)
    total = 0
    while piece := file.read(1 << 20):
        total = zlib.crc32(piece, total)
    return b"%08x" % total


def _size_and_time(file: Path) -> tuple[int, int]:
    """What changes when a file is written again."""
    state = file.stat()
    return state.st_size, state.st_mtime_ns


class IndexedFile(FeatureStore):
    """One of the files, without its keys: the index has them."""

    def _read_index(self) -> None:
        pass

    def has_rows(self, keys: np.ndarray, ends: np.ndarray) -> bool:
        """Whether these are the file's images, and where their rows end."""
        import numpy as np

        try:
            same_keys = np.array_equal(self._read_small_dataset("keys", "S"), keys)
            same_ends = np.array_equal(self._read_small_dataset("ends", "i"), ends)
        except (OSError, RuntimeError, LookupError, ValueError, TypeError):
            return False
        return same_keys and same_ends and self._row_count == (ends[-1] if len(ends) else 0)


class IndexedStore(MultiFileStore):
    """Several stores under one index, with the interface of `FeatureStore`. Raises DataError for an index that is
    damaged, or older than a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = index_path(path)
        self._open_files: OrderedDict[int, IndexedFile] = OrderedDict()
        try:
            with regular(self._file).open("rb") as file:
                line = file.readline(LONGEST_LINE)
                if not line.startswith(MAGIC) or line[len(MAGIC) : CHECKSUM - 1] != _checksum(file):
                    raise ValueError
            header = json.loads(line[CHECKSUM:])
            folder = path if path.is_dir() else path.parent
            self.files: Sequence[Path] = [folder / name for name, _, _ in header["files"]]
            self._states = [(size, time) for _, size, time in header["files"]]
            self._starts = [0]
            for count in header["counts"]:
                self._starts.append(self._starts[-1] + count)
            self._width, self._fingerprint = int(header["width"]), dict(header["fingerprint"])
            self._class_names = tuple(map(str, header["class_names"]))
            self._keys, self._ends, self._order = self._map_arrays(len(line), self._starts[-1], int(header["key"]))
            self._check()
        except (ValueError, LookupError, TypeError, ArithmeticError, OSError, RecursionError):
            raise self._damaged_error() from None
        if self.files != files_of(path) or self._states != [_size_and_time(file) for file in self.files]:
            raise self._outdated_error()

    def _check(self) -> None:
        """Raises ValueError for values that no index has. Whether they are those of a file is seen when it is opened:
        a checksum says nothing about who has written it."""
        import numpy as np

        bounds = list(itertools.pairwise(self._starts))
        if len(bounds) != len(self.files) or self._width < 1 or any(last < first for first, last in bounds):
            raise ValueError
        for first, last in bounds:
            ends = self._ends[first:last]
            if len(ends) and (ends[0] < 0 or (ends[1:] < ends[:-1]).any()):
                raise ValueError
        for first in range(0, len(self), CHECKED):
            places = np.asarray(self._order[first : first + CHECKED + 1])
            if places.min() < 0 or places.max() >= len(self):
                raise ValueError
            keys = self._keys[places]
            if (keys[1:] <= keys[:-1]).any():  # each key is there once, so `order` has each place once
                raise ValueError

    def _damaged_error(self) -> DataError:
        return DataError(
            f"{self._file}: damaged, or of an older version; write it again with `mmgen features index {self.path}`"
        )

    def _outdated_error(self) -> DataError:
        return DataError(
            f"{self._file}: is older than the files; delete it, or write it again with `mmgen features index "
            f"{self.path}`"
        )

    def _map_arrays(self, offset: int, count: int, key: int) -> list[np.ndarray]:
        import numpy as np

        arrays = []
        for dtype in (f"S{key}", "<i8", "<i8"):
            arrays.append(np.asarray(np.memmap(self._file, dtype, "r", offset, (count,))))
            offset += -(-arrays[-1].nbytes // ALIGNED) * ALIGNED
        return arrays

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        IndexedStore.__init__(self, **state)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._place_of_key(key) is not None

    def __iter__(self) -> Iterator[str]:
        try:
            for key in self._keys:
                yield key.decode()
        except UnicodeDecodeError:
            raise self._damaged_error() from None

    @property
    def width(self) -> int:
        return self._width

    @property
    def fingerprint(self) -> dict[str, Any]:
        return self._fingerprint

    @property
    def class_names(self) -> tuple[str, ...]:
        return self._class_names

    def read(self, key: str, limit: int | None = None) -> Record:
        place = self._place_of_key(key)
        if place is None:
            raise self._unknown(key, len(self.files))
        number = self._file_number(place)
        first, last = self._rows_in_file(place, number)
        return self._open_file(number).record(key, first, last, limit)

    def count(self, key: str) -> int:
        place = self._place_of_key(key)
        if place is None:
            return 0
        first, last = self._rows_in_file(place, self._file_number(place))
        return last - first

    def records(self) -> Iterator[Record]:
        for file in self.files:
            yield from FeatureStore(file, in_memory=0).records()

    def close(self) -> None:
        for store in self._open_files.values():
            store.close()
        self._open_files.clear()

    def describe(self) -> dict[str, Any]:
        described = MultiFileStore(self.path, self.files).describe()
        return {**described, "index": f"{self._file.stat().st_size:,} bytes in {self._file}"}

    def _place_of_key(self, key: str) -> int | None:
        """The place of an image among all."""
        import numpy as np

        encoded = key.encode()
        if len(encoded) > self._keys.dtype.itemsize:  # numpy would copy all keys, to compare them with a longer one
            return None
        rank = int(np.searchsorted(self._keys, np.bytes_(encoded), sorter=self._order))
        if rank == len(self._keys) or self._keys[place := int(self._order[rank])] != encoded:
            return None
        return place

    def _file_number(self, place: int) -> int:
        """The number of an image's file."""
        return bisect.bisect_right(self._starts, place) - 1

    def _rows_in_file(self, place: int, number: int) -> tuple[int, int]:
        first = int(self._ends[place - 1]) if place > self._starts[number] else 0
        return first, int(self._ends[place])

    def _open_file(self, number: int) -> IndexedFile:
        """A file, opened; the one that has not been used for longest is closed."""
        if number in self._open_files:
            self._open_files.move_to_end(number)
            return self._open_files[number]
        while len(self._open_files) >= OPEN:
            self._open_files.popitem(last=False)[1].close()
        store = IndexedFile(self.files[number], in_memory=0)
        if _size_and_time(self.files[number]) != self._states[number]:  # written again since the index was opened
            store.close()
            raise self._outdated_error()
        rows = slice(self._starts[number], self._starts[number + 1])
        if (
            store.width != self.width
            or store.fingerprint != self.fingerprint
            or store.class_names not in ((), self.class_names)
            or not store.has_rows(self._keys[rows], self._ends[rows])
        ):
            store.close()
            raise DataError(
                f"{self._file}: does not match {store.path}; write it again with `mmgen features index {self.path}`"
            )
        self._open_files[number] = store
        return store
