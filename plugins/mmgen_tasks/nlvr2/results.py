"""Result files of NLVR2's evaluation, read and written: CSV of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mmgen_vision.published import read_rows
from mmgen_vision.truths import LABELS, truth_of

from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.reading.results import ResultFiles
from mmgen.reading.text import json_lines, tidy

from ..results import add_row, csv_rows, label_of, prediction_of
from .files import read_example


class PairResults(ResultFiles):
    """Lines of `identifier,True`; references are NLVR2's JSON lines."""

    name = "nlvr2"

    def read(self, path: Path, examples: Sequence[Example]) -> dict[str, Any]:
        values: dict[str, Any] = {}

        def take(row: list[str]) -> None:
            if len(row) < 2:
                raise DataError(f"a line must be IDENTIFIER,True or IDENTIFIER,False, not {row[0]!r:.40}")
            add_row(values, tidy(row[0], "identifier"), {"label": _parse_label(row[1].strip())})

        read_rows(csv_rows(path, header=("identifier", "id")), path, take)
        return values

    def read_references(self, path: Path) -> list[Example]:
        examples: dict[str, Example] = {}

        def take(row: Any) -> None:
            example = read_example(row)
            add_row(examples, example.id, example)

        read_rows(json_lines(path), path, take)
        return [*examples.values()]

    def write(self, values: Mapping[str, Any], examples: Sequence[Example]) -> str:
        return "".join(
            f"{example.id},{_parse_label(label_of(prediction_of(values, example.id)))}\n" for example in examples
        )


def _parse_label(label: str) -> str:
    if (truth := truth_of(label)) is None:
        raise DataError(f"the prediction must be True or False, not {label!r:.40}")
    return LABELS[truth]
