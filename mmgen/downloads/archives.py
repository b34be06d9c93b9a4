"""Members of zip archives, on this machine or on a server: found by name, written one by one, inside one folder."""

from __future__ import annotations

import fnmatch
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from ..files import write_atomically
from .https import CHUNK, At, Refused, check_size, checked_sha256, copy_range

BAD = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, UnicodeError)  # of damaged archives
PIECE = 4 << 20  # bytes that one request asks for
HEADER = 1 << 16  # bytes in front of a member, at most


def unpack(
    archive: IO[bytes],
    members: Mapping[str, str],
    folder: Path,
    load: Callable[[int, int], object] = lambda first, end: None,
) -> dict[str, str]:
    """Write members of an archive into a folder. Returns pattern -> SHA-256 of its last member.

    members  pattern -> SHA-256, "" if it is unknown. A pattern is the end of a member's path, such as "a.json" or
             "Sentences/*.txt"; the file's path in `folder` has as many parts
    load     called with the place of a member in the archive before it is read

    zipfile compares every member with its CRC. Raises Refused for a damaged archive or a missing member; RunError if a
    file cannot be written.
    """
    digests = dict[str, str]()
    try:
        with zipfile.ZipFile(archive) as opened:
            entries = [entry for entry in opened.infolist() if "__MACOSX" not in entry.filename]
            for pattern, expected in members.items():
                matching = [entry for entry in entries if fnmatch.fnmatchcase(f"/{entry.filename}", f"*/{pattern}")]
                if not matching:
                    raise Refused(f"the archive has no '{pattern}'")
                for entry in matching:
                    parts = entry.filename.split("/")[-pattern.count("/") - 1 :]
                    if ".." in parts or {*entry.filename} & {"\\", ":"}:
                        raise Refused(f"the archive has a member outside its folder: {entry.filename!r}")
                    load(entry.header_offset, entry.header_offset + entry.compress_size + HEADER)
                    digests[pattern] = _write(opened, entry, folder.joinpath(*parts), expected)
    except BAD as error:
        raise Refused(f"damaged archive: {error}") from None
    return digests


def unpack_remote(url: str, size: int | None, members: Mapping[str, str], folder: Path, at: At) -> dict[str, str]:
    """As `unpack`, for an archive on a server, of which only these members are transferred. Raises NoRanges too."""
    with tempfile.TemporaryFile(dir=folder) as archive:
        check_size(total := copy_range(url, f"-{PIECE}", archive, at), size)  # its end is the table of contents

        def load(first: int, end: int) -> None:
            for place in range(first, min(end, total), PIECE):
                copy_range(url, f"{place}-{place + PIECE - 1}", archive, at)

        return unpack(archive, members, folder, load)


def _write(opened: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path, expected: str) -> str:
    """Write a member, whose SHA-256 must be `expected`, if that is known. Returns its SHA-256."""
    digest = ""

    def write(partial: Path) -> None:
        nonlocal digest
        with opened.open(entry) as source, partial.open("wb") as file:
            shutil.copyfileobj(source, file, CHUNK)
        digest = checked_sha256(partial, expected)

    write_atomically(path, write)
    return digest
