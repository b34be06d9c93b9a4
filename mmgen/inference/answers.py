"""The file that answers are written to: line by line, and under its name when all are there."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import RunError
from ..files import take_name


@contextlib.contextmanager
def answers_file(path: Path) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Calls of what it yields add lines to `.<name>.partial` beside `path`, each at once, and it takes the file's name
    when all are there. Whatever stops that, the lines so far stay in it, an older file stays as it is, and a note on
    the exception says so. Raises RunError when something cannot be written, at first before there is anything to
    add."""
    partial, lines = path.with_name(f".{path.name}.partial"), 0

    def add(line: Mapping[str, Any]) -> None:
        nonlocal lines
        with _refused(path):
            _append(partial, json.dumps(line, ensure_ascii=False) + "\n")
        lines += 1

    with _refused(path):
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "it is no file")
        path.parent.mkdir(parents=True, exist_ok=True)
        file = partial.open("ab")
    with file:
        _own(file, partial, path)
        try:
            yield add
            with _refused(path):
                take_name(partial, path)
        except BaseException as error:
            if lines:
                error.add_note(f"the answers so far ({lines}) are in {partial}; the same command begins anew")
            else:
                partial.unlink(missing_ok=True)
            raise


def _own(file: BinaryIO, partial: Path, path: Path) -> None:
    """The file is this process's, and empty. Raises RunError where another process writes it."""
    # `files.locked` writes into its file who holds it, so it needs a file of its own, which stays beside the answers;
    # here the lines themselves are locked
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not partial.exists() or os.fstat(file.fileno()).st_ino != partial.stat().st_ino:
            raise BlockingIOError  # it has just become the answers of another process
    except BlockingIOError:
        raise RunError(f"{path}: another `mmgen generate` is writing it; wait for it, or name another file") from None
    except OSError:
        pass  # a file system without locks
    file.truncate(0)


def _append(path: Path, line: str) -> None:
    """A whole line or nothing. Lone surrogates are written as \\uXXXX escapes."""
    before = path.stat().st_size
    try:
        with path.open("ab") as file:
            file.write(line.encode("utf-8", "backslashreplace"))
    except OSError:
        os.truncate(path, before)
        raise


@contextlib.contextmanager
def _refused(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror or error}") from None
