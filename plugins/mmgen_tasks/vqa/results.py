"""Result files of VQA's evaluation, read and written: JSON of answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.reading.results import ResultFiles
from mmgen.reading.text import image_id, kind, read_items, read_list, require_keys

from ..results import add_row, label_of, prediction_of
from .files import read_annotation


class VqaResults(ResultFiles):
    """`[{"question_id": 262148000, "answer": "red"}, ...]`; references are a file of annotations."""

    name = "vqa"

    def read(self, path: Path, examples: Sequence[Example]) -> dict[str, Any]:
        values: dict[str, Any] = {}

        def take(row: Any) -> None:
            require_keys(row, "question_id", "answer")
            add_row(
                values, image_id(row["question_id"], "question_id", plain=True), _check_text(row["answer"], "answer")
            )

        read_items(read_list(path, "results", "VQA results", bare=True)[1], path, "results", take)
        return values

    def read_references(self, path: Path) -> list[Example]:
        examples: dict[str, Example] = {}

        def take(row: Any) -> None:
            require_keys(row, "question_id", "answers")
            question_id = image_id(row["question_id"], "question_id", plain=True)
            known = read_annotation(row)
            facts = {**known.facts} if known.image is None else {**known.facts, "image": known.image}
            add_row(examples, question_id, Example(question_id, {}, known.answers, facts))

        read_items(read_list(path, "annotations", "VQA annotations")[1], path, "annotations", take)
        return [*examples.values()]

    def write(self, values: Mapping[str, Any], examples: Sequence[Example]) -> str:
        rows = [
            {
                "question_id": number_or_text(example.id),
                "answer": label_of(prediction_of(values, example.id)),
            }
            for example in examples
        ]
        return json.dumps(rows, ensure_ascii=False) + "\n"


def number_or_text(text: str) -> int | str:
    """An id as published files have it: a number if the text is one."""
    return int(text) if re.fullmatch("0|[1-9][0-9]{0,17}", text) else text


def _check_text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise DataError(f"{name} must be a string, not {kind(value)}")
    return value
