"""What readers and writers of result files share."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mmgen.errors import DataError
from mmgen.reading.text import read_text


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


def label_of(value: Any) -> str:
    told = value.get("label") if isinstance(value, Mapping) else value
    if not isinstance(told, str):
        raise DataError(f"what is predicted must be a label or a text, and is {value!r:.60}")
    return told


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
