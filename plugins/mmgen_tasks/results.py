"""Result files of VQA's and NLVR2's evaluation; and what readers of result files share."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mmgen.errors import DataError
from mmgen.reading.results import ResultFiles
from mmgen.reading.text import each, image_id, json_lines, kind, listed, read_text, tidy, wanted
from mmgen.tensors import Example

from .dataset import placed
from .nlvr2 import read_example


class VqaResults(ResultFiles):
    """`[{"question_id": 262148000, "answer": "red"}, ...]`; references are a file of annotations."""

    name = "vqa"

    def read(self, path: Path, examples: Sequence[Example]) -> dict[str, Any]:
        found: dict[str, Any] = {}

        def take(row: Any) -> None:
            wanted(row, "question_id", "answer")
            put(found, image_id(row["question_id"], "question_id", plain=True), _text(row["answer"], "answer"))

        each(listed(path, "results", "VQA results", bare=True)[1], path, "results", take)
        return found

    def read_references(self, path: Path) -> list[Example]:
        found: dict[str, Example] = {}

        def take(row: Any) -> None:
            wanted(row, "question_id", "answers")
            own = image_id(row["question_id"], "question_id", plain=True)
            if not isinstance(row["answers"], list):
                raise DataError(f"answers must be a list of what people said, and is {kind(row['answers'])}")
            answers = []
            for answer in row["answers"]:
                wanted(answer, "answer")
                answers.append(_text(answer["answer"], "answer"))
            facts = {name: tidy(row[name], name) for name in ("question_type", "answer_type") if row.get(name)}
            if row.get("image_id") is not None:
                facts["image"] = image_id(row["image_id"], "image_id")
            put(found, own, Example(own, {}, tuple(answers), facts))

        each(listed(path, "annotations", "VQA annotations")[1], path, "annotations", take)
        return [*found.values()]

    def write(self, values: Mapping[str, Any], examples: Sequence[Example]) -> str:
        rows = [
            {
                "question_id": int(one.id) if one.id.isdecimal() else one.id,
                "answer": _label(prediction_of(values, one.id)),
            }
            for one in examples
        ]
        return json.dumps(rows, ensure_ascii=False) + "\n"


class PairResults(ResultFiles):
    """Lines of `identifier,True`; references are NLVR2's JSON lines."""

    name = "nlvr2"

    def read(self, path: Path, examples: Sequence[Example]) -> dict[str, Any]:
        found: dict[str, Any] = {}

        def take(row: list[str]) -> None:
            if len(row) < 2:
                raise DataError(f"a line is IDENTIFIER,True or IDENTIFIER,False, and this has no comma: {row[0]!r:.40}")
            put(found, tidy(row[0], "identifier"), {"label": _truth(row[1].strip())})

        each_row(csv_rows(path), path, take, skip=("identifier", "id"))
        return found

    def read_references(self, path: Path) -> list[Example]:
        found: dict[str, Example] = {}

        def take(row: Any) -> None:
            example = read_example(row)
            put(found, example.id, example)

        placed(json_lines(path), path, take)
        return [*found.values()]

    def write(self, values: Mapping[str, Any], examples: Sequence[Example]) -> str:
        return "".join(f"{one.id},{_truth(_label(prediction_of(values, one.id)))}\n" for one in examples)


def put(found: dict[str, Any], own: str, value: Any) -> None:
    """Raises DataError where there is one of this id already."""
    if own in found:
        raise DataError(f"'{own:.60}' came before")
    found[own] = value


def prediction_of(values: Mapping[str, Any], own: str) -> Any:
    """Raises DataError where there is none."""
    if own not in values:
        raise DataError(f"no prediction for '{own}'")
    return values[own]


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise DataError(f"{name} must be a text, not {kind(value)}")
    return value


def _label(value: Any) -> str:
    told = value.get("label") if isinstance(value, Mapping) else value
    if not isinstance(told, str):
        raise DataError(f"what is predicted must be a label or a text, and is {value!r:.60}")
    return told


def _truth(label: str) -> str:
    if label.lower() not in ("true", "false"):
        raise DataError(f"what is predicted must be True or False, and is {label!r:.40}")
    return label.capitalize()


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Numbered rows of a CSV file; empty ones are passed over."""
    try:
        for number, row in enumerate(csv.reader(read_text(path).splitlines()), 1):
            if any(cell.strip() for cell in row):
                yield number, row
    except csv.Error as error:
        raise DataError(f"{path}: not usable CSV: {error}") from None


def each_row(
    rows: Iterator[tuple[int, list[str]]], path: Path, take: Callable[[list[str]], None], skip: Sequence[str] = ()
) -> None:
    """Hand rows to `take`; a DataError that it raises gets file and line in front. A first row that begins with one of
    `skip` is a header."""
    for place, (number, row) in enumerate(rows):
        if place or row[0].strip().lower() not in skip:
            try:
                take(row)
            except DataError as error:
                raise DataError(f"{path}:{number}: {error}") from None
