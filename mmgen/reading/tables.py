"""Tables with a header: the rows of a CSV or TSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import DataError
from .text import read_text

BETWEEN = "---"  # joins the texts of a cell in VQG's files
TABS = (".tsv", ".tab")
DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}  # of spreadsheets; Excel writes ";" in half of Europe


def is_table(path: Path) -> bool:
    """Whether a file is a table, by its name, which may end in .gz."""
    return _without_gz(path).suffix.lower() in (".csv", *TABS)


def _without_gz(path: Path) -> Path:
    return path.with_suffix("") if path.suffix == ".gz" else path


def rows(path: Path) -> Iterator[tuple[int, Sequence[str]]]:
    """The header and then the rows of a table, each with the number of its last line. Every row has as many cells as
    the header, which says by what cells are separated: see `_delimiter`. Raises DataError."""
    text = read_text(path)
    delimiter = _delimiter(path, text)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    filled_rows = filter(None, reader)  # without empty lines
    try:
        header = [name.strip() for name in next(filled_rows, [])]
        yield max(1, reader.line_num), header
        for cells in filled_rows:
            if len(cells) != len(header):
                raise DataError(
                    f"{path}:{reader.line_num}: values: {len(cells)}, columns: {len(header)}; put texts with "
                    f"{DELIMITERS[delimiter]} in quotation marks"
                )
            yield reader.line_num, cells
    except csv.Error as error:
        raise DataError(
            f"{path}:{max(1, reader.line_num)}: its quotation marks, or those of a line before, do not fit: {error}"
        ) from None


def _delimiter(path: Path, text: str) -> str:
    """What separates the cells of a table: the most frequent one in the header. A tab of a .tsv or .tab file comes
    first; in doubt it is a comma."""
    header = text.lstrip("\r\n").partition("\n")[0]
    if _without_gz(path).suffix.lower() in TABS and "\t" in header:
        return "\t"
    return max(DELIMITERS, key=header.count)
