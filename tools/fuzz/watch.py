"""Watches a process while it reads a damaged file: no program may be started, no address opened, no code of the file
run, nothing written elsewhere."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from mmgen.features.untrusted_hdf5 import WALK

STARTS = {
    *("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "subprocess.Popen"),
    *("socket.connect", "socket.bind", "socket.getaddrinfo", "urllib.Request", "pty.spawn"),
}
CHANGES = {"os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.symlink", "os.link", "os.truncate", "os.chmod"}
CODE = {"compile", "exec", "import", "ctypes.dlopen", "pickle.find_class"}
TEMPORARY = re.compile(r"(mmgen-[-a-z]*|tmp)[a-z0-9_]{8}")  # names that mmgen and `tempfile` create
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Watch:
    """Python's audit events of the process. It cannot be taken back, so a forked child has it.

    folder  where files may be written; also in temporary ones of mmgen and `tempfile`
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._temporary = os.path.realpath(folder), os.path.realpath(tempfile.gettempdir())
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
            writes = isinstance(flags, int) and flags & WRITES
            if writes and self._is_elsewhere(path) and not Path(os.fsdecode(path)).is_dir():  # a file without a name
                self._seen = f"opened {path!r} for writing"
        elif event in CODE:
            if self._runs_code(event, arguments, sys._getframe(1)):
                self._seen = f"{event} {arguments[:2]!r}"
        elif (
            _starts(event, arguments)
            or event in CHANGES
            and not isinstance(arguments[0], int)  # a file that is open
            and not _in_folder(arguments)
            and any(self._is_elsewhere(path, follow=False) for path in arguments[event == "os.symlink" : 2])
        ):
            self._seen = f"{event} {arguments[:2]!r}"

    def _is_elsewhere(self, path: Any, follow: bool = True) -> bool:
        return isinstance(path, str | bytes | os.PathLike) and not self._is_here(path, follow) and path != os.devnull

    def _is_here(self, path: str | bytes | os.PathLike, follow: bool = True) -> bool:
        """Whether a path is in the folder of the case or in a temporary one. `follow`: also if it is a link, as what is
        opened; else only the links of its folders, as what is removed or renamed is the link."""
        folder, name = os.path.split(os.fsdecode(path))
        real = os.path.realpath(os.fsdecode(path)) if follow else f"{os.path.realpath(folder)}/{name}"
        if real == self._folder or real.startswith(f"{self._folder}/"):
            return True
        below = real.removeprefix(f"{self._temporary}/")
        return below != real and bool(TEMPORARY.fullmatch(below.partition("/")[0]))

    def _runs_code(self, event: str, arguments: tuple[Any, ...], caller: FrameType) -> bool:
        """Whether code of a file of the case is run, whatever a pickle names, or a text that is not of a library."""
        if event == "pickle.find_class":
            return True
        name = arguments[0] if event == "ctypes.dlopen" else arguments[1] if event != "exec" else None
        if event == "exec":
            name = arguments[0].co_filename
            if name.startswith("<"):  # as data classes do; libraries generate code, mmgen does not
                return caller.f_globals.get("__name__", "").partition(".")[0] not in sys.stdlib_module_names and (
                    "site-packages" not in caller.f_code.co_filename and not caller.f_code.co_filename.startswith("<")
                )
        return isinstance(name, str | bytes) and os.fsencode(os.sep) in os.fsencode(name) and self._is_here(name)


def _in_folder(arguments: tuple[Any, ...]) -> bool:
    """Whether a path is in a folder that is open, by its number, as when a folder is deleted with its content."""
    return isinstance(arguments[-1], int) and arguments[-1] >= 0 and not Path(os.fsdecode(arguments[0])).is_absolute()


def _starts(event: str, arguments: tuple[Any, ...]) -> bool:
    """Whether a program is started or an address opened. (HDF5 files may crash their library, so a program of mmgen
    walks through them first.)"""
    return event in STARTS and not (event == "subprocess.Popen" and str(WALK) in arguments[1])
