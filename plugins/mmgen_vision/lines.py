"""Reads lists that people keep in small files: image numbers, answers, pickles of plain values."""

from __future__ import annotations

import io
import pickle
import re
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

from pydantic import Field

from mmgen.errors import DataError
from mmgen.reading.rows import Filled, Row, validate
from mmgen.reading.text import parse_json, read_text, read_unpacked

PICKLES = (".p", ".pkl", ".pickle")  # file name suffixes


class _Plain(pickle._Unpickler):  # its slots take no more memory than values
    """Lists, tables, texts and numbers; a pickle is a program, and what it may call is nothing."""

    dispatch = {code: load for code, load in pickle._Unpickler.dispatch.items() if code != pickle.BYTEARRAY8[0]}

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"needs {module}.{name}, and could execute arbitrary code")

    def persistent_load(self, id_: Any) -> NoReturn:
        raise pickle.UnpicklingError("needs an object outside the file")


class Answers(Row):
    """An answer vocabulary."""

    answers: list[Filled] = Field(min_length=1)


def read_value(path: Path) -> Any:
    """The value of a file of JSON, or, by its name, of a pickle of plain values. Raises DataError."""
    if _suffix(path) not in PICKLES:
        return parse_json(read_text(path), path)
    data = io.BytesIO(read_unpacked(path))
    try:
        return _Plain(data, encoding="utf-8").load()
    except Exception as error:  # a stack that does not fit its steps raises nearly anything
        why = str(error).partition("\n")[0] or type(error).__name__
        raise DataError(f"{path}: not a complete pickle of lists, tables and strings: {why}") from None


def read_images(path: Path) -> set[str]:
    """Image numbers, one per line. Raises DataError for a line that is not a number."""
    numbers = set()
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if text := line.strip():
            if not re.fullmatch("[0-9]{1,20}", text):
                raise DataError(f"{path}:{number}: '{text:.40}' is not an image number; write one number per line")
            numbers.add(str(int(text)))
    return numbers


def read_answers(path: Path) -> tuple[str, ...]:
    """Answers in the order of their numbers: lines of text (Pythia's answers_vqa.txt, with "<unk>" first), a JSON list
    (LXMERT's trainval_label2ans.json) or a table of numbers (trainval_ans2label.json), or either as a pickle. Raises
    DataError."""
    values = read_value(path) if _suffix(path) in (".json", *PICKLES) else read_text(path).rstrip().split("\n")
    if isinstance(values, dict):
        places = {answer: place for answer, place in values.items() if isinstance(place, int)}
        if {*places.values()} != {*range(len(values))}:
            raise DataError(f"{path}: the answers are not numbered 0 to {len(values) - 1:,}; give a list of answers")
        values = sorted(places, key=places.__getitem__)
    answers = validate({"answers": values}, Answers, path).answers
    if double := [answer for answer, count in Counter(answers).items() if count > 1]:
        raise DataError(f"{path}: duplicate '{double[0]:.60}'")
    return tuple(answers)


def _suffix(path: Path) -> str:
    return (path.with_suffix("") if path.suffix == ".gz" else path).suffix
