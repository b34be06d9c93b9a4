"""Members of zip archives, on this machine or on a server: found by name, written one by one, inside one folder."""

from __future__ import annotations

import fnmatch
import hashlib
import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from ..files import write_atomically
from .https import CHUNK, At, Refused

BAD = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, UnicodeError)  # of damaged archives


def unpack(
    archive: IO[bytes] | io.BufferedReader, members: Mapping[str, str], folder: Path, at: At = lambda position: None
) -> Iterator[tuple[str, str, str]]:
    """Write members of an archive into a folder. Yields the pattern, the name and the SHA-256 of each.

    members  pattern -> SHA-256, "" if it is unknown. A pattern is the end of a member's path, such as "a.json" or
             "Sentences/*.txt"; the file's path in `folder` has as many parts

    zipfile compares every member with its CRC. Raises Refused for a damaged archive or a missing member; RunError if a
    file cannot be written.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            entries = [entry for entry in opened.infolist() if not entry.is_dir() and "__MACOSX" not in entry.filename]
            written = 0
            for pattern, expected in members.items():
                matching = [entry for entry in entries if fnmatch.fnmatchcase(f"/{entry.filename}", f"*/{pattern}")]
                if not matching:
                    raise Refused(f"the archive has no '{pattern}'; it has {len(entries)} files")
                for entry in matching:
                    parts = entry.filename.split("/")
                    if {"", ".", ".."} & {*parts} or set(entry.filename) & {"\\", ":"}:
                        raise Refused(f"the archive has a member outside its folder: {entry.filename!r}")
                    name = "/".join(parts[-pattern.count("/") - 1 :])
                    digest, written = _write(opened, entry, folder / name, expected, written, at)
                    yield pattern, name, digest
    except BAD as error:
        raise Refused(f"damaged archive: {error}") from None


def _write(
    opened: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path, expected: str, written: int, at: At
) -> tuple[str, int]:
    """Write a member, whose SHA-256 must be `expected`, if that is known. Returns its SHA-256, and `written` with its
    bytes."""
    digest = hashlib.sha256()

    def write(partial: Path) -> None:
        nonlocal written
        with opened.open(entry) as source, partial.open("wb") as file:
            while chunk := source.read(CHUNK):
                file.write(chunk)
                digest.update(chunk)
                at(written := written + len(chunk))
        if expected not in ("", digest.hexdigest()):
            raise Refused(
                f"'{entry.filename}' is another file: SHA-256 {digest.hexdigest()[:12]}..., not {expected[:12]}..."
            )

    write_atomically(path, write)
    return digest.hexdigest(), written
