"""Tables of queries (CSV, TSV), read as the run's data set reads its own: columns by their names, texts in one cell."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..configs import TableColumns
from ..errors import DataError
from ..reading.tables import rows
from ..reading.text import join_names
from ..registry import installed
from ..storage.run_folder import RunFolder
from .hub import find_folder
from .query_names import StepNames
from .query_pictures import is_file

log = logging.getLogger("mmgen")


def table_reader(path: Path, step: str | None) -> Callable[[Path], Iterator[tuple[int, Mapping[str, Any]]]]:
    """A function that reads the rows of a table as values by name, with their numbers, for the model in `path`.

    Columns that are no input of the step (without a step: of any step) are left out, and logged. Rows of one id, and
    rows that are equal without the other columns, are one query: a table to train on may have a row for each text."""

    def read(source: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
        recipe = RunFolder(find_folder(path)).recipe(installed())
        chosen = step or (next(iter(recipe.steps)) if len(recipe.steps) == 1 else None)
        names = StepNames(recipe, chosen or next(iter(recipe.steps)))
        columns = ((recipe.scored_data(chosen) if chosen else None) or recipe.data).table_columns()
        several = {*names.labels, *names.optional}
        fields = [field for config in names.inputs.values() for field in config.fields]
        known = [*names.inputs, *fields, *several] if chosen else names.known
        (_, header), *numbered = rows(source)
        try:
            places = _places(header, ["id", *known], columns)
        except DataError as error:
            raise DataError(f"{source}:1: {error}") from None
        if unused := [name for place, name in enumerate(header) if place not in places.values()]:
            log.info("%s: unused columns: %s", source, join_names(unused))
        read_before: set[str] = set()
        for number, cells in numbered:
            values: dict[str, Any] = {}
            for name, place in places.items():
                if texts := _texts(cells[place], columns.between):
                    values[name] = texts if name in several and len(texts) > 1 else texts[0]
            for name in {*names.pictures} & {*values}:
                picture = (columns.images or source.parent) / values[name]
                if not is_file(source.parent / values[name]) and is_file(picture):  # in the data's own folder
                    values[name] = str(picture.resolve())
            if (same := str(values.get("id") or values)) not in read_before:
                read_before.add(same)
                yield number, values

    return read


def _places(header: Sequence[str], known: Sequence[str], columns: TableColumns) -> dict[str, int]:
    """Input -> the index of its column. Raises DataError without any, and for a column that is there twice."""
    places: dict[str, int] = {}
    for name in known:
        column = next((column for column in columns.names.get(name, (name,)) if column in header), None)
        if column is not None:
            if header.count(column) > 1:
                raise DataError(f"the column '{column}' occurs {header.count(column)} times; keep one of them")
            places[name] = header.index(column)
    if not {*places} - {"id"}:
        raise DataError(
            f"no column is an input: the columns are {join_names(header)}; inputs are {join_names(known[1:])}"
        )
    return places


def _texts(cell: str, between: str) -> list[str]:
    """The texts of a cell."""
    return [text for part in (cell.split(between) if between else [cell]) if (text := part.strip())]
