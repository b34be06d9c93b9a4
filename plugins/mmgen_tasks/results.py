"""What readers and writers of result files share."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
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


def csv_rows(path: Path, header: Sequence[str] = ()) -> Iterator[tuple[int, list[str]]]:
    """Numbered rows of a CSV file, without empty ones, and without a first one that begins with one of `header`."""
    try:
        rows = [row for row in enumerate(csv.reader(read_text(path).splitlines()), 1) if any(map(str.strip, row[1]))]
    except csv.Error as error:
        raise DataError(f"{path}: not usable CSV: {error}") from None
    yield from rows[1:] if rows and rows[0][1][0].strip().lower() in header else rows
