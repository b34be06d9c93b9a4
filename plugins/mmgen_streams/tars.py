"""Tar files in WebDataset's layout: members by their headers, grouped to samples; contents are read when needed."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from itertools import groupby
from typing import Any

from PIL import Image

from mmgen.errors import DataError
from mmgen.features.images import SUFFIXES, open_image
from mmgen.parts import Picture
from mmgen.reading.text import join_names

from .places import open_file, remote

MOST_BYTES = 256 << 20  # of a picture
MOST_TEXT = 4 << 20  # bytes of a text or of a JSON object
LONGEST_NAME = 1000  # characters
END = 2 * tarfile.BLOCKSIZE  # bytes of zeros behind the last member


@dataclass(frozen=True)
class Member:
    """A file in an archive. `problem`: why it is not read; empty if it can be read."""

    archive: str
    name: str
    offset: int
    size: int
    problem: str = ""

    @property
    def key(self) -> str:
        """The name up to the first dot behind the folders."""
        folder, slash, name = self.name.rpartition("/")
        return f"{folder}{slash}{name.partition('.')[0]}"

    @property
    def ending(self) -> str:
        return self.name[len(self.key) :].lower()

    @property
    def is_picture(self) -> bool:
        return self.ending.endswith(SUFFIXES)

    def content(self, most: int) -> bytes:
        """Raises DataError for a member that cannot be read, or has more than `most` bytes."""
        where = f"{self.archive}: {self.name!r}"
        if self.problem:
            raise DataError(f"{where} {self.problem}")
        if self.size > most:
            raise DataError(f"{where} has {self.size:,} bytes; the limit is {most:,}")
        with remote(self.archive), open_file(self.archive) as file:
            file.seek(self.offset)
            content = file.read(self.size)
        if len(content) < self.size:
            raise DataError(f"{where} is cut off; the archive is damaged")
        return content

    def image(self) -> Image.Image:
        return open_image(BytesIO(self.content(MOST_BYTES)), f"{self.archive}: {join_names([self.name])}")


@dataclass(frozen=True)
class Sample:
    """The members of an archive with one key."""

    archive: str
    key: str
    members: tuple[Member, ...] = field(repr=False)

    @property
    def place(self) -> str:
        return f"{self.archive}: {self.key!r}"

    def fields(self) -> dict[str, Any]:
        """The fields of its JSON object, and its text. Raises DataError."""
        fields: dict[str, Any] = {}
        for member in self.members:
            if member.ending == ".json":
                fields |= _read_json(member)
            elif member.ending == ".txt":
                fields["txt"] = _read_text(member).strip()
        return fields


def members(archive: str) -> Iterator[Member]:
    """The files of an archive, in order; folders are left out. Raises DataError for a damaged archive."""
    with remote(archive), open_file(archive) as file:
        try:
            with tarfile.open(fileobj=file, mode="r:") as tar:
                while (entry := tar.next()) is not None:
                    setattr(tar, "members", [])  # noqa: B010 (tarfile remembers all of them; its types leave the list out)
                    if entry.size < 0:  # its end is before it, so that reading on would never end
                        raise tarfile.ReadError
                    if not entry.isdir():
                        yield Member(archive, entry.name, entry.offset_data, entry.size, _member_problem(entry))
                file.seek(tar.offset)
                if file.read(END).strip(b"\0"):  # tarfile ends at a damaged header, without a word
                    raise tarfile.ReadError
        except (tarfile.TarError, EOFError, ValueError, OverflowError, MemoryError, RecursionError):
            raise DataError(f"{archive}: not a tar file, or damaged; compressed archives must be unpacked") from None


def _member_problem(entry: tarfile.TarInfo) -> str:
    """Why a member is not read."""
    if not entry.isreg() or entry.issparse():
        return "is not a regular file, but a link or a device"
    if entry.name.startswith("/") or ".." in entry.name.split("/"):
        return "has a name that leads out of the archive"
    return ""


def samples(archive: str) -> Iterator[Sample]:
    """The samples of an archive; members with one key must follow each other."""
    for key, group in groupby(members(archive), lambda member: member.key[:LONGEST_NAME]):
        yield Sample(archive, key, tuple(group))


def pictures(archive: str) -> Iterator[Picture]:
    """The pictures of an archive, not yet read. One that cannot be read raises DataError when it is loaded."""
    for sample in samples(archive):
        for member in sample.members:
            if member.is_picture:
                yield Picture(sample.key, partial(Member.image, member))
                break


def _read_text(member: Member) -> str:
    try:
        return member.content(MOST_TEXT).decode("utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{member.archive}: {member.name!r} is not UTF-8") from None


def _read_json(member: Member) -> dict[str, Any]:
    value: object = None
    text = _read_text(member)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise DataError(f"{member.archive}: {member.name!r} is not valid JSON") from None
    if not isinstance(value, dict):
        raise DataError(f"{member.archive}: {member.name!r} must be a JSON object")
    return value
