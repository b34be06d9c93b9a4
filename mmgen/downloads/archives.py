"""Members of zip archives, on this machine or on a server: found by name, written one by one, inside one folder."""

from __future__ import annotations

import fnmatch
import io
import shutil
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from ..files import write_atomically
from .https import CHUNK, Refused, checked_sha256

BAD = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, UnicodeError)  # of damaged archives


def unpack(archive: IO[bytes] | io.BufferedReader, members: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Write members of an archive into a folder. Returns pattern -> SHA-256 of its last member.

    members  pattern -> SHA-256, "" if it is unknown. A pattern is the end of a member's path, such as "a.json" or
             "Sentences/*.txt"; the file's path in `folder` has as many parts

    zipfile compares every member with its CRC. Raises Refused for a damaged archive or a missing member; RunError if a
    file cannot be written.
    """
    digests = dict[str, str]()
    try:
        with zipfile.ZipFile(archive) as opened:
            entries = [entry for entry in opened.infolist() if not entry.is_dir() and "__MACOSX" not in entry.filename]
            for pattern, expected in members.items():
                matching = [entry for entry in entries if fnmatch.fnmatchcase(f"/{entry.filename}", f"*/{pattern}")]
                if not matching:
                    raise Refused(f"the archive has no '{pattern}'; it has {len(entries)} files")
                for entry in matching:
                    parts = entry.filename.split("/")
                    if {"", ".", ".."} & {*parts} or set(entry.filename) & {"\\", ":"}:
                        raise Refused(f"the archive has a member outside its folder: {entry.filename!r}")
                    path = folder.joinpath(*parts[-pattern.count("/") - 1 :])
                    digests[pattern] = _write(opened, entry, path, expected)
    except BAD as error:
        raise Refused(f"damaged archive: {error}") from None
    return digests


def _write(opened: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path, expected: str) -> str:
    """Write a member, whose SHA-256 must be `expected`, if that is known. Returns its SHA-256."""

    def write(partial: Path) -> None:
        with opened.open(entry) as source, partial.open("wb") as file:
            shutil.copyfileobj(source, file, CHUNK)
        checked_sha256(partial, expected, entry.filename)

    write_atomically(path, write)
    return checked_sha256(path, expected)
