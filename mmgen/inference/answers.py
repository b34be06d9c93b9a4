"""Answers to queries: value, score, JSON, view in a notebook; and the file to which they are written line by line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..examples import LOG_PROBABILITY, Generation, Likelihood, Prediction
from ..files import write_errors
from ..parts import Picture
from ..progress import html_table
from ..reading.text import json_lines


@dataclass(frozen=True)
class Answer:
    """The answer of a step to one query.

    id          the id of the query
    texts       the texts of a step that writes, best first; the texts whose likelihood was asked for, in their order
                (`mmgen.examples.Likelihood`); or fillings of blanks
    blanks      of each blank: its most probable words with their probabilities
    prediction  the prediction of a step that predicts a label, a choice, a region or boxes
    remarks     hints for the user: truncated texts, unknown words, a text that is cut
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
    blanks: tuple[list[tuple[str, float]], ...] = ()
    pictures: tuple[Picture, ...] = field(default=(), repr=False, compare=False)  # of the query, for notebooks

    def __repr__(self) -> str:
        return f"<Answer to {self.id!r:.60}: {self.error or f'{self.value!r:.120}'}>"

    def _repr_html_(self) -> str:
        """The pictures of the query beside the texts or the prediction, for a notebook."""
        from ..report.pictures import picture_tags

        if self.error:
            rows = [["error"], [self.error]]
        else:
            shown = self.texts or [self.best]
            rows = [["answer", "score"], *([f"{answer.value!s:.200}", f"{answer.score:.2f}"] for answer in shown)]
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
        """The best text, or the predicted value (`mmgen.examples.Prediction`). Raises DataError with `error`."""
        return self.best.value

    @property
    def score(self) -> float:
        """The score of the best text (`Generation.score_kind`), or the probability of the prediction."""
        return self.best.score

    def as_json(self) -> dict[str, Any]:
        """The answer as a JSON object; "remarks" only if the answer has some."""
        texts = [
            {"text": text.text, "score": round(text.score, 4)}
            | ({} if text.score_kind == LOG_PROBABILITY else {"score_kind": text.score_kind})
            | ({"prompt": text.prompt} if text.prompt else {})
            | (_parts_of(text) if isinstance(text, Likelihood) else {})
            for text in self.texts
        ]
        made = self.prediction
        predicted = {"value": made.value, "score": round(made.score, 4), "choices": [*self.choices]} if made else {}
        line = {"id": self.id, "error": self.error, "texts": texts, **predicted, "seed": self.seed}
        line["blanks"] = [_rounded(words) for words in self.blanks]
        line["remarks"] = [*self.remarks]
        return {name: value for name, value in line.items() if name == "value" or value not in ("", [], None)}


def _parts_of(text: Likelihood) -> dict[str, Any]:
    """The keys of a likelihood that other texts do not have; its kind only if it is not exact."""
    parts = {"log_probability": round(text.log_probability, 4), "tokens": _rounded(text.pieces)}
    return parts | {"words": _rounded(text.words)} | ({} if text.kind == "exact" else {"kind": text.kind})


def _rounded(pairs: Iterable[tuple[str, float]]) -> list[list[Any]]:
    return [[name, round(value, 4)] for name, value in pairs]


class AnswersFile:
    """A file of answers as lines of JSON. Lines go to `.<name>.partial` beside it, which `finish` renames; `done`: the
    ids in that file, of an earlier attempt that was stopped. Raises RunError if a file cannot be written."""

    def __init__(self, path: Path) -> None:
        self.path, self.partial = path, path.with_name(f".{path.name}.partial")
        with write_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            text = self.partial.read_bytes() if self.partial.exists() else b""
            self.partial.write_bytes(text[: text.rfind(b"\n") + 1])  # a killed process may leave half a line
        self.done = {line["id"] for line in lines_of(self.partial)}

    def add(self, line: Mapping[str, Any]) -> None:
        text = json.dumps(line, ensure_ascii=False)
        with write_errors(self.path), self.partial.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{text}\n")
        self.done.add(line["id"])

    def finish(self) -> None:
        with write_errors(self.path):
            self.partial.replace(self.path)


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of answers. Raises DataError."""
    lines = [line for _, line in json_lines(path)]
    if not all(isinstance(line, dict) and "id" in line for line in lines):
        raise DataError(f"{path}: is not a file of answers; delete it, and run the command again")
    return lines


def shard_path(path: Path, number: int, count: int) -> Path:
    """The file of a shard's answers: "answers.jsonl" -> "answers-03-of-64.jsonl". The files of all shards, in the order
    of their names, are the whole."""
    return path.with_name(f"{path.stem}-{number:0{len(str(count))}}-of-{count}{path.suffix}")
