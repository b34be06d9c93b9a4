"""Answers to queries: value, score, JSON, view in a notebook; and the file to which they are written line by line."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import DataError, RunError
from ..evaluation.collapse import collapsed
from ..parts import Picture
from ..progress import html_table
from ..tensors import LOG_PROBABILITY, Generation, Prediction


@dataclass(frozen=True)
class Answer:
    """The answer of a step to one query.

    id          the id of the query
    texts       the texts of a step that writes, best first
    prediction  the prediction of a step that predicts a label, a choice, a region or boxes
    remarks     hints for the user: truncated texts, unknown words, a text that repeats itself, stutters or has no end,
                a picture unlike all pictures of the run
    choices     of a step that predicts a choice: the texts to choose from, if the query has them
    error       why the query could not be read; such an answer has no texts and no prediction
    pictures    the pictures of the query
    seed        of texts that are sampled: the seed that gives the same texts again
    """

    id: str
    texts: tuple[Generation, ...] = ()
    prediction: Prediction | None = None
    remarks: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    error: str = ""
    seed: int | None = None
    pictures: tuple[Picture, ...] = field(default=(), repr=False, compare=False)  # of the query, for notebooks

    def __repr__(self) -> str:
        return f"<Answer to {self.id!r:.60}: {self.error or f'{self.value!r:.120}'}>"

    def _repr_html_(self) -> str:
        """The pictures of the query beside the texts or the prediction, for a notebook."""
        from ..report.notebook import picture_tags

        if self.error:
            rows = [[self.error]]
        elif self.texts:
            rows = [[text.text, f"{text.score:.2f}"] for text in self.texts]
        else:
            rows = [[f"{json.dumps(self.value, ensure_ascii=False):.200}", f"{self.score:.1%}"]]
        rows = [["error"] if self.error else ["answer", "score"], *rows]
        return picture_tags(self.pictures) + html_table(rows, self.remarks, self.id)

    @property
    def best(self) -> Generation | Prediction:
        """The best text, or the prediction. Raises DataError with `error` if the query could not be read."""
        if self.error:
            raise DataError(self.error)
        best = self.texts[0] if self.texts else self.prediction
        assert best is not None  # an answer without an error has texts or a prediction
        return best

    @property
    def value(self) -> Any:
        """The best text, or the predicted value (`mmgen.tensors.Prediction`). Raises DataError with `error`."""
        return self.best.value

    @property
    def score(self) -> float:
        """The score of the best text (`Generation.score_kind`), or the probability of the prediction."""
        return self.best.score

    def as_json(self) -> dict[str, Any]:
        """The answer as a JSON object; "remarks" only if the answer has some."""
        line: dict[str, Any] = {"id": self.id}
        if self.error:
            line["error"] = self.error
        elif self.prediction is not None:
            line |= {"value": self.prediction.value, "score": round(self.prediction.score, 4)}
            line |= {"choices": list(self.choices)} if self.choices else {}
        else:
            line["texts"] = [
                {"text": text.text, "score": round(text.score, 4)}
                | ({} if text.score_kind == LOG_PROBABILITY else {"score_kind": text.score_kind})
                | ({"prompt": text.prompt} if text.prompt else {})
                for text in self.texts
            ]
            line |= {} if self.seed is None else {"seed": self.seed}
        return line | ({"remarks": list(self.remarks)} if self.remarks else {})


def remark_on_all(answers: Iterable[Answer]) -> str:
    """A remark if at least half of the best texts of many answers are the same or have no word; "" otherwise."""
    return collapsed([answer.texts[0].text for answer in answers if answer.texts])


class AnswersFile:
    """A file of lines beside `path`, to which `add` appends. `earlier`: the lines of an earlier attempt."""

    def __init__(self, path: Path) -> None:
        self.path, self.partial = path, path.with_name(f".{path.name}.partial")
        self.earlier: list[dict[str, Any]] = []
        self.lines = 0

    def add(self, line: Mapping[str, Any]) -> None:
        """Append a line. Raises RunError if it cannot be written."""
        with _as_run_error(self.path):
            _append_line(self.partial, json.dumps(line, ensure_ascii=False) + "\n")
        self.lines += 1


@contextlib.contextmanager
def answers_file(
    path: Path, resume: bool = False, check: Callable[[Path, list[dict[str, Any]]], None] = lambda partial, lines: None
) -> Iterator[AnswersFile]:
    """Yield a file whose lines go to `.<name>.partial` beside `path`; at the end, rename that file to `path`.

    Each line is written immediately. If the block raises, the partial file keeps its lines, an older file at `path` is
    unchanged, and a note on the exception names the partial file. Raises RunError if a file cannot be written; a first
    check runs before the block.

    resume  keep the complete lines of an earlier attempt; otherwise they are removed
    check   raises an error for a partial file whose lines are not those of an earlier attempt; the file stays
            unchanged
    """
    answers = AnswersFile(path)
    partial = answers.partial
    with _as_run_error(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = partial.open("ab")
    with file:
        _lock_for_writing(file, partial, path)
        size, answers.earlier = _complete_lines(partial) if resume else (0, [])
        if answers.earlier:
            check(partial, answers.earlier)
        file.truncate(size)
        try:
            yield answers
            with _as_run_error(path):
                partial.replace(path)
        except BaseException as error:
            if total := answers.lines + len(answers.earlier):
                again = "continues" if resume else "starts over"
                error.add_note(f"partial answers ({total}) are in {partial}; re-running the command {again}")
            else:
                partial.unlink(missing_ok=True)
            raise


def _complete_lines(path: Path) -> tuple[int, list[dict[str, Any]]]:
    """The lines of JSON at the beginning of a file, and their size in bytes: a killed process may leave half a line."""
    size, lines = 0, []
    with path.open("rb") as file:
        for text in file:
            try:
                line = json.loads(text) if text.endswith(b"\n") else None
            except (ValueError, RecursionError):
                break
            if not isinstance(line, dict):
                break
            lines.append(line)
            size += len(text)
    return size, lines


def _lock_for_writing(file: BinaryIO, partial: Path, path: Path) -> None:
    """Lock the file for this process. Raises RunError if another process writes it."""
    # `files.locked` writes the holder of the lock into a separate lock file, which would stay beside the answers;
    # here the file of answers itself is locked
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not partial.exists() or os.fstat(file.fileno()).st_ino != partial.stat().st_ino:
            raise BlockingIOError  # another process has just renamed it
    except BlockingIOError:
        raise RunError(f"{path}: another command is writing this file; wait for it, or choose another file") from None
    except OSError:
        pass  # a file system without locks


def _append_line(path: Path, line: str) -> None:
    """Append a complete line or nothing. Lone surrogates are written as \\uXXXX escapes."""
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
