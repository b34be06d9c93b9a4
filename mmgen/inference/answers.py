"""Answers: what a step says to a query, and the file that answers are written to, line by line."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import DataError, RunError
from ..files import take_name
from ..tensors import Generation, Prediction


@dataclass(frozen=True)
class Answer:
    """What a step says to one query.

    id          of the query
    texts       best first, of a step that writes
    prediction  of a step that predicts a label, a choice, a region or boxes
    remarks     what a person should know: words that were cut off or are unknown, a text that repeats itself
    error       why the query could not be read; then there are neither texts nor a prediction
    """

    id: str
    texts: tuple[Generation, ...] = ()
    prediction: Prediction | None = None
    remarks: tuple[str, ...] = ()
    error: str = ""

    @property
    def best(self) -> Generation | Prediction:
        """The best text, or the prediction. Raises DataError with `error` where there is neither."""
        if self.error:
            raise DataError(self.error)
        best = self.texts[0] if self.texts else self.prediction
        assert best is not None  # without an error there is one of them
        return best

    @property
    def value(self) -> Any:
        """The best text, or what is predicted (`mmgen.tensors.Prediction`). Raises DataError with `error`."""
        return self.best.value

    @property
    def score(self) -> float:
        """Of the best text, the mean log-probability of its tokens; of a prediction, its probability."""
        return self.best.score

    def as_json(self) -> dict[str, Any]:
        """The answer as a line of JSON; "remarks" where there are any."""
        line: dict[str, Any] = {"id": self.id}
        if self.error:
            line["error"] = self.error
        elif self.prediction is not None:
            line |= {"value": self.prediction.value, "score": round(self.prediction.score, 4)}
        else:
            line["texts"] = [{"text": text.text, "score": round(text.score, 4)} for text in self.texts]
        return line | ({"remarks": list(self.remarks)} if self.remarks else {})


@contextlib.contextmanager
def answers_file(path: Path) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Calls of what it yields add lines to `.<name>.partial` beside `path`, each at once, and it takes the file's name
    when all are there. Whatever stops that, the lines so far stay in it, an older file stays as it is, and a note on
    the exception says so. Raises RunError when something cannot be written, at first before there is anything to
    add."""
    partial, lines = path.with_name(f".{path.name}.partial"), 0

    def add(line: Mapping[str, Any]) -> None:
        nonlocal lines
        with _as_run_error(path):
            _append(partial, json.dumps(line, ensure_ascii=False) + "\n")
        lines += 1

    with _as_run_error(path):
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "it is not a file")
        path.parent.mkdir(parents=True, exist_ok=True)
        file = partial.open("ab")
    with file:
        _claim(file, partial, path)
        try:
            yield add
            with _as_run_error(path):
                take_name(partial, path)
        except BaseException as error:
            if lines:
                error.add_note(f"partial answers ({lines}) are in {partial}; re-running the command starts over")
            else:
                partial.unlink(missing_ok=True)
            raise


def _claim(file: BinaryIO, partial: Path, path: Path) -> None:
    """The file is this process's, and empty. Raises RunError where another process writes it."""
    # `files.locked` writes into its file who holds it, so it needs a file of its own, which stays beside the answers;
    # here the lines themselves are locked
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not partial.exists() or os.fstat(file.fileno()).st_ino != partial.stat().st_ino:
            raise BlockingIOError  # it has just become the answers of another process
    except BlockingIOError:
        raise RunError(f"{path}: another command is writing it; wait for it, or name another file") from None
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
def _as_run_error(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror or error}") from None
