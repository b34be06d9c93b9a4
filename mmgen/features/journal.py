"""A journal of records: what a feature store is filled from, and what survives a kill at any moment.

A line that says what the journal is for, then frames, one appended after another: length and checksum (12 bytes), then
a record as safetensors. A torn frame at the end is cut off when the journal is opened again, so a kill costs at most
the record that was being written.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from ..errors import DataError, RunError

if TYPE_CHECKING:
    from ..parts import Record


MAGIC = b"mmgen journal 1 "


FRAME = struct.Struct("<QI")


SYNC_SECONDS = 5.0  # a power cut costs no more than this; a mere kill less


LONGEST_LINE = 1 << 20


class Entry(NamedTuple):
    """What is remembered of a record whose arrays lie on the disk."""

    place: int
    key: str
    regions: int


class Journal:
    """A journal, opened for appending. `purpose` is what the journal was begun with. Raises DataError when the file is
    no journal, and RunError when the disk refuses a write (which is not the fault of any one image).

    classes  names of the classes of its regions, which the first record that has some brings along, and how many of
             them a region has; None where no record has any
    """

    def __init__(self, path: Path, purpose: dict[str, Any]) -> None:
        self.path, self.entries = path, []
        self.classes: tuple[tuple[str, ...], int] | None = None
        with self._writing():
            self._file: BinaryIO = path.open("r+b" if path.exists() else "w+b")
        self._synced = time.monotonic()
        line = self._file.readline(LONGEST_LINE)
        if line.startswith(MAGIC) and line.endswith(b"\n"):
            self.purpose = self._purpose(line)
            self.entries = list(self._scan())
        elif line[: len(MAGIC)] == MAGIC[: len(line)] and not self._file.read(
            1
        ):  # new, or killed within its first line
            self.purpose = purpose
            with self._writing():
                self._file.truncate(0)
                self._file.seek(0)
                self._file.write(MAGIC + json.dumps(purpose).encode() + b"\n")
                self._sync()
        else:
            raise DataError(f"{path}: not a partial feature store; move it away, its name is needed")

    def _purpose(self, line: bytes) -> dict[str, Any]:
        try:
            purpose = json.loads(line.removeprefix(MAGIC))
        except (ValueError, RecursionError):
            purpose = None
        if not isinstance(purpose, dict):
            raise DataError(f"{self.path}:1: damaged, it does not say what it is for; delete it and begin anew")
        return purpose

    def append(self, record: Record) -> None:
        """One more record, safe from a kill of this process when this returns."""
        from safetensors.numpy import save

        arrays = {"features": record.features, "boxes": record.boxes, "scores": record.scores}
        about = {"key": record.key, "labels": json.dumps(record.labels)}
        classes = self.classes
        if record.classes is not None:
            arrays |= {"class_ids": record.classes.ids, "class_probabilities": record.classes.probabilities}
            if classes is None:
                classes = record.classes.names, record.classes.ids.shape[1]
                about["class_names"] = json.dumps(classes[0])
        frame = save({name: array for name, array in arrays.items() if array is not None}, about)
        with self._writing():
            place = self._file.seek(0, os.SEEK_END)
            self._file.write(FRAME.pack(len(frame), zlib.crc32(frame)) + frame)
            self._file.flush()
            if time.monotonic() - self._synced > SYNC_SECONDS:
                self._sync()
        self.classes = classes
        self.entries.append(Entry(place, record.key, len(record.features)))

    def read(self, entry: Entry) -> Record:
        """Raises DataError when the disk did not keep it."""
        from safetensors.numpy import load

        from ..parts import Record
        from .classes import Classes

        self._file.seek(entry.place)
        length, checksum = FRAME.unpack(self._file.read(FRAME.size))
        frame = self._file.read(length)
        if zlib.crc32(frame) != checksum:
            raise DataError(f"{self.path}: damaged at byte {entry.place}; delete it and begin anew")
        about = _header(frame[8 : 8 + int.from_bytes(frame[:8], "little")])["__metadata__"]
        arrays, labels = load(frame), json.loads(about["labels"])
        boxes, scores = arrays.get("boxes"), arrays.get("scores")
        classes = None
        if "class_ids" in arrays and self.classes is not None:
            classes = Classes(self.classes[0], arrays["class_ids"], arrays["class_probabilities"])
        labels = None if labels is None else tuple(labels)
        return Record(about["key"], arrays["features"], boxes, labels, scores, classes)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunError(
                f"{self.path}: cannot be written: {error.strerror}; the {len(self.entries)} images in it are kept, and "
                "the same command goes on from there"
            ) from None

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def close(self) -> None:
        with contextlib.suppress(OSError):  # of what a full disk did not take, all has been said
            self._file.close()

    def _scan(self) -> Iterator[Entry]:
        """Every whole frame, by its header alone; what follows the last whole one is cut off."""
        place = self._file.tell()
        size = self._file.seek(0, os.SEEK_END)
        while place + FRAME.size + 8 <= size:
            self._file.seek(place)
            length, _ = FRAME.unpack(self._file.read(FRAME.size))
            end = place + FRAME.size + length
            longest = int.from_bytes(self._file.read(8), "little")
            if end > size or longest + 8 > length:
                break
            try:
                tables = _header(self._file.read(longest))
                about = tables["__metadata__"]
                entry = Entry(place, about["key"], tables["features"]["shape"][0])
                if "class_names" in about and self.classes is None:
                    names = tuple(map(str, json.loads(about["class_names"])))
                    self.classes = names, int(tables["class_ids"]["shape"][1])
                if end == size:
                    self.read(entry)  # the last one may be whole in length only
            except (ValueError, LookupError, TypeError, RecursionError, DataError):
                break
            yield entry
            place = end
        self._file.truncate(place)


def _header(text: bytes) -> dict[str, Any]:
    return json.loads(text)
