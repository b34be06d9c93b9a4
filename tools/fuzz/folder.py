"""The folder in which cases run: in memory, and restored after each case by writing only what the case changed."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

UNTOUCHED = 10**18  # the time of change of whole files, in nanoseconds; a write sets another one, in 2001 it was this
TICK = 20_000_000  # nanoseconds in which two changes may get the same time; a tick of a kernel's clock is 1 to 10 ms


def in_memory() -> tempfile.TemporaryDirectory:
    """A temporary folder in memory, where there is one."""
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(prefix="mmgen-fuzz-", dir=memory if os.access(memory, os.W_OK) else None)


class CaseFolder:
    """A folder with whole files. Cases change, add and remove files; `restore` undoes it.

    A whole file has a fixed time of change, so that a write shows. A case may set it back: the time at which the
    system noted the last change (ctime) shows this too, except within a tick of its clock. What was written a moment
    ago is therefore compared byte by byte."""

    def __init__(self, source: Path, path: Path) -> None:
        self.path = path
        self._contents: Mapping[str, bytes | Path | None] = _read(source, "")
        self._marks: dict[str, tuple[int, ...]] = {}
        self._fresh: set[str] = set()  # files that may change without another mark

    def restore(self) -> None:
        """Make the folder the whole one again."""
        self.path.mkdir(exist_ok=True)
        intact: set[str] = set()
        self._sweep(self.path, "", intact)
        for name, content in self._contents.items():
            if name not in intact:
                self._create(name, content)

    def _sweep(self, folder: Path, prefix: str, intact: set[str]) -> None:
        """Remove what is not as it was. `intact` gets the names of the rest."""
        with os.scandir(folder) as entries:
            for entry in entries:
                name = prefix + entry.name
                if self._is_intact(name, entry):
                    intact.add(name)
                    if self._contents[name] is None:
                        self._sweep(folder / entry.name, f"{name}/", intact)
                elif entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                else:
                    Path(entry.path).unlink()

    def _is_intact(self, name: str, entry: os.DirEntry) -> bool:
        if name not in self._contents:
            return False
        content = self._contents[name]
        if content is None:
            return entry.is_dir(follow_symlinks=False)
        if isinstance(content, Path):
            return entry.is_symlink() and Path(entry.path).readlink() == content
        stat = entry.stat(follow_symlinks=False)
        if self._marks.get(name) != _mark(stat):
            return False
        if name not in self._fresh:
            return True
        if time.time_ns() > stat.st_ctime_ns + TICK:
            self._fresh.remove(name)
        return Path(entry.path).read_bytes() == content

    def _create(self, name: str, content: bytes | Path | None) -> None:
        path = self.path / name
        if content is None:
            path.mkdir()
        elif isinstance(content, Path):
            path.symlink_to(content)
        else:
            path.write_bytes(content)
            os.utime(path, ns=(UNTOUCHED, UNTOUCHED))
            self._marks[name] = _mark(path.stat())
            self._fresh.add(name)


def _mark(stat: os.stat_result) -> tuple[int, ...]:
    return stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_mode


def _read(folder: Path, prefix: str) -> dict[str, bytes | Path | None]:
    """Name -> content of a file, target of a link, or None for a folder; a folder before what is in it."""
    contents: dict[str, bytes | Path | None] = {}
    for path in sorted(folder.iterdir()):
        name = prefix + path.name
        if path.is_symlink():
            contents[name] = path.readlink()
        elif path.is_dir():
            contents[name] = None
            contents |= _read(path, f"{name}/")
        else:
            contents[name] = path.read_bytes()
    return contents
