"""Parquet files, read some rows at a time. Pictures are bytes, paths, or tables of both."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import Any

from PIL import Image

from mmgen.errors import DataError, install_extra
from mmgen.features.images import open_image
from mmgen.parts import Picture

from .places import is_url, open_file, remote

ROWS = 64  # in memory at a time


@dataclass(frozen=True)
class Row:
    """A row of a file, counted from 0."""

    archive: str
    number: int
    values: dict[str, Any]

    @property
    def place(self) -> str:
        return f"{self.archive}: row {self.number}"

    def fields(self) -> dict[str, Any]:
        return self.values


def count(archive: str) -> int:
    """The number of rows, from the file's end. Raises DataError."""
    with open_file(archive) as file:
        return int(_open_archive(archive, file).metadata.num_rows)


def rows(archive: str, columns: Sequence[str], start: int = 0) -> Iterator[Row]:
    """The rows from `start` on, with these columns. Raises DataError."""
    with open_file(archive) as file:
        table = _open_archive(archive, file)
        if absent := [name for name in columns if name not in table.schema_arrow.names]:
            have = ", ".join(table.schema_arrow.names[:20])
            raise DataError(f"{archive}: no column '{absent[0]}'; the columns are {have}")
        number, groups = 0, list[int]()
        for group in range(table.metadata.num_row_groups):
            size = table.metadata.row_group(group).num_rows
            if number + size > start or groups:
                groups.append(group)
            else:
                number += size
        try:
            for batch in table.iter_batches(ROWS, row_groups=groups, columns=list(columns)):
                if number + len(batch) > start:
                    for place, values in enumerate(batch.to_pylist(), number):
                        if place >= start:
                            yield Row(archive, place, values)
                number += len(batch)
        except DataError:
            raise
        except Exception:  # pyarrow has errors of many kinds
            raise DataError(f"{archive}: row {number} cannot be read; the file is damaged") from None


def pictures(archive: str, key: str, picture: str) -> Iterator[Picture]:
    """The pictures of a file; one that cannot be read raises DataError when it is loaded."""
    for row in rows(archive, [key, picture]):
        yield Picture(str(row.values[key]), partial(_load_picture, archive, row.number, row.values[picture]))


def _load_picture(archive: str, number: int, value: Any) -> Image.Image:
    place = f"{archive}: row {number}"
    if isinstance(value, dict):
        value = value.get("bytes") or value.get("path")
    if isinstance(value, bytes):
        return open_image(BytesIO(value), place)
    if not isinstance(value, str) or not value:
        raise DataError(f"{place}: has no picture; expected bytes, a path, or a table of both")
    if is_url(value) or value.startswith("/") or ".." in value.split("/"):
        raise DataError(f"{place}: '{value}' leads out of the folder of the file")
    path = f"{archive.rpartition('/')[0] or '.'}/{value}"
    with remote(path), open_file(path) as file:
        return open_image(BytesIO(file.read()), path)


def _open_archive(archive: str, file: Any) -> Any:
    if importlib.util.find_spec("pyarrow") is None:
        raise DataError(f"{archive}: needs pyarrow; {install_extra('streams')}")
    import pyarrow.parquet

    try:
        return pyarrow.parquet.ParquetFile(file)
    except Exception:  # pyarrow has errors of many kinds
        raise DataError(f"{archive}: not a parquet file, or damaged") from None
