"""Tables with a header: the rows of a CSV file, or of a TSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import DataError
from .text import read_text

BETWEEN = "---"  # joins the texts of a cell in VQG's files
TABS = (".tsv", ".tab")


def is_table(path: Path) -> bool:
    """By its name, which may end in .gz."""
    return _plain(path).suffix.lower() in (".csv", *TABS)


def _plain(path: Path) -> Path:
    return path.with_suffix("") if path.suffix == ".gz" else path


def rows(path: Path) -> Iterator[tuple[int, Sequence[str]]]:
    """The header and then the rows of a table, each with the line that it ends on. Every row has as many cells as the
    header. They are divided by tabs where the file's name says so, by commas elsewhere. Raises DataError."""
    tabs = _plain(path).suffix.lower() in TABS
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True, delimiter="\t" if tabs else ",")
    filled = filter(None, reader)  # without empty lines
    try:
        header = [name.strip() for name in next(filled, [])]
        yield max(1, reader.line_num), header
        for cells in filled:
            if len(cells) != len(header):
                raise DataError(
                    f"{path}:{reader.line_num}: {_count(cells, 'value')} under {_count(header, 'column')}; questions "
                    f"with {'a tab' if tabs else 'a comma'} stand in quotation marks"
                )
            yield reader.line_num, cells
    except csv.Error as error:
        raise DataError(f"{path}:{max(1, reader.line_num)}: {_of_quotes(error)}") from None


def _count(things: Sequence[str], name: str) -> str:
    return f"{len(things)} {name}{'s' * (len(things) != 1)}"


def _of_quotes(error: csv.Error) -> str:
    """What is wrong with a line, and what to do."""
    text = str(error)
    if text == "unexpected end of data":
        return "a quotation mark is opened and not closed before the file's end; close it"
    if text.startswith("field larger than"):
        return f"a cell of more than {csv.field_size_limit():,} letters; is a quotation mark before it not closed?"
    if "expected after" in text:
        return "a closing quotation mark has text behind it; inside a cell in quotation marks, write each of them twice"
    return text
