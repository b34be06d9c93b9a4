"""The answers that a model chooses from: the most common ones, or those of a published file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mmgen.errors import DataError
from mmgen.reading.text import kind, parse_json, read_text, tidy

from ..pickles import PICKLES, read_pickle

UNKNOWN = "<unk>"  # Pythia's first answer, which is never right


def most_common(answers: Iterable[str], most: int, least: int, path: Path) -> tuple[str, ...]:
    """The `most` most common answers of those that are given `least` times or more; of equally common ones the first
    given goes before. `path`: where they are from. Raises DataError where there are none."""
    counts = Counter(filter(None, answers))
    found = tuple(answer for answer, count in counts.most_common(most) if count >= least)
    if not found:
        raise DataError(
            f"{path}: no answer is left of {len(counts):,}: none is given {least:,} times; lower data.min_count"
        )
    return found


def read_vocabulary(path: Path) -> tuple[str, ...]:
    """Answers in the order of their numbers: lines of text (Pythia's answers_vqa.txt, with "<unk>" first), a JSON list
    (LXMERT's trainval_label2ans.json) or table of numbers (trainval_ans2label.json), or either as a pickle. Raises
    DataError."""
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    if plain.suffix in PICKLES:
        return _distinct(_listed(read_pickle(path), path), path, "answer ")
    if plain.suffix == ".json":
        return _distinct(_listed(parse_json(read_text(path), path), path), path, "answer ")
    lines = read_text(path).split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    return _distinct(lines, path, "")


def _listed(value: Any, path: Path) -> list[Any]:
    """A list of answers; of a table of numbers, in their order."""
    if isinstance(value, dict):
        places = sorted(value, key=lambda answer: value[answer] if isinstance(value[answer], int) else -1)
        if [value[answer] for answer in places] != list(range(len(places))):
            raise DataError(f"{path}: its answers are not numbered 0 to {len(places) - 1:,}; give a list of them")
        return places
    if not isinstance(value, list):
        raise DataError(f"{path}: not a file of answers: it is {kind(value)}, and must be a list of texts")
    return value


def _distinct(values: list[Any], path: Path, what: str) -> tuple[str, ...]:
    """Texts that differ. `what`: what is counted, behind the path in errors; nothing for lines."""
    found: dict[str, int] = {}
    for number, value in enumerate(values, 1):
        place = f"{path}: {what}{number}" if what else f"{path}:{number}"
        try:
            answer = tidy(value, "the answer")
        except DataError as error:
            raise DataError(f"{place}: {error}") from None
        if not answer:
            raise DataError(f"{place}: the answer is empty")
        if answer in found:
            raise DataError(f"{place}: '{answer:.60}' is there already, as {what or 'line '}{found[answer]}")
        found[answer] = number
    if not found:
        raise DataError(f"{path}: not a file of answers: it is empty")
    return tuple(found)
