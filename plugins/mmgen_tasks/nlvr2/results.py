"""Result files of NLVR2's evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mmgen_vl.published import read_rows

from mmgen.errors import DataError
from mmgen.reading.results import ResultFiles
from mmgen.reading.text import json_lines, tidy
from mmgen.tensors import Example

from ..results import csv_rows, label_of, prediction_of, put
from .files import read_example


class PairResults(ResultFiles):
    """Lines of `identifier,True`; references are NLVR2's JSON lines."""

    name = "nlvr2"

    def read(self, path: Path, examples: Sequence[Example]) -> dict[str, Any]:
        found: dict[str, Any] = {}

        def take(row: list[str]) -> None:
            if len(row) < 2:
                raise DataError(f"a line is IDENTIFIER,True or IDENTIFIER,False, and this has no comma: {row[0]!r:.40}")
            put(found, tidy(row[0], "identifier"), {"label": _truth(row[1].strip())})

        read_rows(csv_rows(path, header=("identifier", "id")), path, take)
        return found

    def read_references(self, path: Path) -> list[Example]:
        found: dict[str, Example] = {}

        def take(row: Any) -> None:
            example = read_example(row)
            put(found, example.id, example)

        read_rows(json_lines(path), path, take)
        return [*found.values()]

    def write(self, values: Mapping[str, Any], examples: Sequence[Example]) -> str:
        return "".join(f"{one.id},{_truth(label_of(prediction_of(values, one.id)))}\n" for one in examples)


def _truth(label: str) -> str:
    if label.lower() not in ("true", "false"):
        raise DataError(f"what is predicted must be True or False, and is {label!r:.40}")
    return label.capitalize()
