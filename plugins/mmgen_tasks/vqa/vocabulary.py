"""Reads the answer vocabularies of published files: the list of answers that a classifier knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mmgen.errors import DataError
from mmgen.reading.text import kind, parse_json, read_text, tidy

from ..pickles import PICKLES, read_pickle

UNKNOWN = "<unk>"  # Pythia's first answer, which is never right


def read_vocabulary(path: Path) -> tuple[str, ...]:
    """Answers in the order of their numbers: lines of text (Pythia's answers_vqa.txt, with "<unk>" first), a JSON list
    (LXMERT's trainval_label2ans.json) or a table of numbers (trainval_ans2label.json), or either as a pickle. Raises
    DataError."""
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    if plain.suffix in PICKLES:
        return _check_distinct(_list_answers(read_pickle(path), path), path, "answer ")
    if plain.suffix == ".json":
        return _check_distinct(_list_answers(parse_json(read_text(path), path), path), path, "answer ")
    lines = read_text(path).split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    return _check_distinct(lines, path, "")


def _list_answers(value: Any, path: Path) -> list[Any]:
    """A list of answers; the answers of a table are ordered by their numbers."""
    if isinstance(value, dict):
        places = sorted(value, key=lambda answer: value[answer] if isinstance(value[answer], int) else -1)
        if [value[answer] for answer in places] != list(range(len(places))):
            raise DataError(f"{path}: the answers are not numbered 0 to {len(places) - 1:,}; give a list of answers")
        return places
    if not isinstance(value, list):
        raise DataError(f"{path}: a file of answers must be a list of strings, not {kind(value)}")
    return value


def _check_distinct(values: list[Any], path: Path, what: str) -> tuple[str, ...]:
    """Answers that differ. `what`: the unit counted in error messages; empty for lines. Raises DataError."""
    numbers: dict[str, int] = {}
    for number, value in enumerate(values, 1):
        place = f"{path}: {what}{number}" if what else f"{path}:{number}"
        try:
            answer = tidy(value, "the answer")
        except DataError as error:
            raise DataError(f"{place}: {error}") from None
        if not answer:
            raise DataError(f"{place}: the answer is empty")
        if answer in numbers:
            raise DataError(f"{place}: duplicate '{answer:.60}', first as {what or 'line '}{numbers[answer]}")
        numbers[answer] = number
    if not numbers:
        raise DataError(f"{path}: the file of answers is empty")
    return tuple(numbers)
