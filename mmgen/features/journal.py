"""A journal of records, from which a feature store is assembled, and which survives a kill at any moment.

A header line says what the journal is for. Frames follow, each appended to the last: length and checksum (12 bytes),
then a record as safetensors. An incomplete frame at the end is cut off when the journal is opened again, so a kill
costs at most the record that was being written.
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


SYNC_SECONDS = 5.0  # a power cut loses at most this much; a kill loses less


LONGEST_LINE = 1 << 20


class Entry(NamedTuple):
    """The index entry of a record on the disk."""

    offset: int
    key: str
    regions: int


class Journal:
    """A journal, opened for appending. `purpose` is the header of a new journal. Raises DataError if the file is not a
    journal, and RunError if a write fails (which is not the fault of the image).

    classes  names of the regions' classes, saved with the first record that has classes, and the number of classes per
             region; None while no record has classes
    """

    def __init__(self, path: Path, purpose: dict[str, Any]) -> None:
        self.path, self.entries = path, []
        self.classes: tuple[tuple[str, ...], int] | None = None
        with self._write_errors():
            self._file: BinaryIO = path.open("r+b" if path.exists() else "w+b")
        self._synced = time.monotonic()
        line = self._file.readline(LONGEST_LINE)
        if line.startswith(MAGIC) and line.endswith(b"\n"):
            self.purpose = self._read_purpose(line)
            self.entries = list(self._scan_entries())
        elif line[: len(MAGIC)] == MAGIC[: len(line)] and not self._file.read(
            1
        ):  # new, or killed while writing its header
            self.purpose = purpose
            with self._write_errors():
                self._file.truncate(0)
                self._file.seek(0)
                self._file.write(MAGIC + json.dumps(purpose).encode() + b"\n")
                self._sync_to_disk()
        else:
            raise DataError(
                f"{path}: not a partial feature store; move or rename this file, because its name is needed"
            )

    def _read_purpose(self, line: bytes) -> dict[str, Any]:
        try:
            purpose = json.loads(line.removeprefix(MAGIC))
        except (ValueError, RecursionError):
            purpose = None
        if not isinstance(purpose, dict):
            raise DataError(f"{self.path}:1: damaged header; delete the file and start over")
        return purpose

    def append(self, record: Record) -> None:
        """Append a record. When this method returns, the record survives a kill of the process."""
        from safetensors.numpy import save

        arrays = {"features": record.features, "boxes": record.boxes, "scores": record.scores}
        metadata = {"key": record.key, "labels": json.dumps(record.region_names)}
        classes = self.classes
        if record.classes is not None:
            arrays |= {"class_ids": record.classes.ids, "class_probabilities": record.classes.probabilities}
            if classes is None:
                classes = record.classes.names, record.classes.ids.shape[1]
                metadata["class_names"] = json.dumps(classes[0])
        frame = save({name: array for name, array in arrays.items() if array is not None}, metadata)
        with self._write_errors():
            offset = self._file.seek(0, os.SEEK_END)
            self._file.write(FRAME.pack(len(frame), zlib.crc32(frame)) + frame)
            self._file.flush()
            if time.monotonic() - self._synced > SYNC_SECONDS:
                self._sync_to_disk()
        self.classes = classes
        self.entries.append(Entry(offset, record.key, len(record.features)))

    def read(self, entry: Entry) -> Record:
        """The record of an entry. Raises DataError if its bytes are damaged."""
        from safetensors.numpy import load

        from ..parts import Record
        from .classes import Classes

        self._file.seek(entry.offset)
        length, checksum = FRAME.unpack(self._file.read(FRAME.size))
        frame = self._file.read(length)
        if zlib.crc32(frame) != checksum:
            raise DataError(f"{self.path}: damaged at byte {entry.offset}; delete the file and start over")
        metadata = _parse_header(frame[8 : 8 + int.from_bytes(frame[:8], "little")])["__metadata__"]
        arrays, names = load(frame), json.loads(metadata["labels"])
        boxes, scores = arrays.get("boxes"), arrays.get("scores")
        classes = None
        if "class_ids" in arrays and self.classes is not None:
            classes = Classes(self.classes[0], arrays["class_ids"], arrays["class_probabilities"])
        region_names = None if names is None else tuple(names)
        return Record(metadata["key"], arrays["features"], boxes, region_names, scores, classes)

    @contextlib.contextmanager
    def _write_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunError(
                f"{self.path}: cannot be written: {error.strerror}; the file has {len(self.entries)} images; "
                "re-run the same command to continue"
            ) from None

    def _sync_to_disk(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def close(self) -> None:
        with contextlib.suppress(OSError):  # a full disk has already been reported
            self._file.close()

    def _scan_entries(self) -> Iterator[Entry]:
        """Entries of all complete frames, from their headers; everything after the last complete frame is cut off."""
        offset = self._file.tell()
        size = self._file.seek(0, os.SEEK_END)
        while offset + FRAME.size + 8 <= size:
            self._file.seek(offset)
            length, _ = FRAME.unpack(self._file.read(FRAME.size))
            end = offset + FRAME.size + length
            header_length = int.from_bytes(self._file.read(8), "little")
            if end > size or header_length + 8 > length:
                break
            try:
                tables = _parse_header(self._file.read(header_length))
                metadata = tables["__metadata__"]
                entry = Entry(offset, metadata["key"], tables["features"]["shape"][0])
                if "class_names" in metadata and self.classes is None:
                    names = tuple(map(str, json.loads(metadata["class_names"])))
                    self.classes = names, int(tables["class_ids"]["shape"][1])
                if end == size:
                    self.read(entry)  # the last frame may have its full length but damaged bytes
            except (ValueError, LookupError, TypeError, RecursionError, DataError):
                break
            yield entry
            offset = end
        self._file.truncate(offset)


def _parse_header(text: bytes) -> dict[str, Any]:
    return json.loads(text)
