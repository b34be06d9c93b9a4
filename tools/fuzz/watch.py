"""Watches a process while it reads a damaged file: no program may be started, no address opened, nothing written
elsewhere."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mmgen.features.untrusted_hdf5 import WALK

STARTS = {
    *("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "subprocess.Popen"),
    *("socket.connect", "socket.bind", "socket.getaddrinfo", "urllib.Request", "pty.spawn"),
}
CHANGES = {"os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.symlink", "os.link", "os.truncate", "os.chmod"}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Watch:
    """Python's audit events of the process. It cannot be taken back, so a forked child has it.

    folder  where files may be written; also in the folder of temporary files
    """

    def __init__(self, folder: Path) -> None:
        self._allowed = (str(folder), tempfile.gettempdir(), os.devnull)
        self._reading, self._seen = False, ""
        sys.dont_write_bytecode = True
        sys.addaudithook(self._notice)

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        self._reading, self._seen = True, ""
        try:
            yield
        finally:
            self._reading = False

    @property
    def problem(self) -> str:
        """What was done that reading must not do; empty if nothing was."""
        return self._seen

    def _notice(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._reading:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & WRITES and self._is_elsewhere(path):
                self._seen = f"opened {path!r} for writing"
        elif (
            _starts(event, arguments)
            or event in CHANGES
            and not isinstance(arguments[0], int)  # a file that is open
            and not _in_folder(arguments)
            and self._is_elsewhere(arguments[0])
        ):
            self._seen = f"{event} {arguments[:2]!r}"

    def _is_elsewhere(self, path: Any) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        return not str(Path.cwd() / os.fsdecode(path)).startswith(self._allowed)


def _in_folder(arguments: tuple[Any, ...]) -> bool:
    """Whether a path is in a folder that is open, by its number, as when a folder is deleted with its content."""
    return isinstance(arguments[-1], int) and arguments[-1] >= 0 and not Path(os.fsdecode(arguments[0])).is_absolute()


def _starts(event: str, arguments: tuple[Any, ...]) -> bool:
    """Whether a program is started or an address opened. (HDF5 files may crash their library, so a program of mmgen
    walks through them first.)"""
    return event in STARTS and not (event == "subprocess.Popen" and str(WALK) in arguments[1])
