"""Shared by the readers and writers of result files: one row per id, an example's prediction, its label, CSV rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mmgen.errors import DataError
from mmgen.reading.text import read_text


def add_row(rows: dict[str, Any], row_id: str, value: Any) -> None:
    """Adds a value under its id. Raises DataError for a duplicate id."""
    if row_id in rows:
        raise DataError(f"duplicate id '{row_id:.60}'")
    rows[row_id] = value


def prediction_of(values: Mapping[str, Any], example_id: str) -> Any:
    """The prediction for an example. Raises DataError without one."""
    if example_id not in values:
        raise DataError(f"no prediction for '{example_id}'")
    return values[example_id]


def label_of(value: Any) -> str:
    """A prediction's label: the value itself, or the value under "label". Raises DataError."""
    label = value.get("label") if isinstance(value, Mapping) else value
    if not isinstance(label, str):
        raise DataError(f"the prediction must be a label or a string, not {value!r:.60}")
    return label


def csv_rows(path: Path, header: Sequence[str] = ()) -> Iterator[tuple[int, list[str]]]:
    """Rows of a CSV file, each with the number of its last line, without empty rows and without a first row that begins
    with a word of `header`."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""))
    try:
        rows = [(reader.line_num, row) for row in reader if any(map(str.strip, row))]
    except csv.Error:  # the only one that the reader raises unless it is strict
        raise DataError(
            f"{path}:{reader.line_num}: a cell has more than {csv.field_size_limit():,} characters; is a quotation "
            "mark before it not closed?"
        ) from None
    yield from rows[1:] if rows and rows[0][1][0].strip().lower() in header else rows
