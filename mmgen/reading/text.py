"""Reads text, gzip, JSON and tables with a header (CSV, TSV) from anywhere; faults name file and place."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..files import json_problem

MOST_BYTES = 1 << 30  # of an unpacked text; the largest published caption file has a tenth of this
LONGEST = 1_000_000  # characters of a text; a tokenizer takes minutes for a hundred times as many
BETWEEN = "---"  # joins the texts of a cell in VQG's files
TABS = (".tsv", ".tab")
NAMES = {
    dict: "a table",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number with a point",
    type(None): "null",
}


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, unpacked if gzipped, without a byte-order mark. Raises DataError."""
    data = read_unpacked(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1  # counted from after a byte-order mark, which has no line break
        raise DataError(f"{path}:{line}: the encoding is not UTF-8; save the file as UTF-8") from None
    return text


def read_unpacked(path: Path) -> bytes:
    """The bytes of a file, unpacked if gzipped, at most `MOST_BYTES`, since a small file may unpack to more than fits
    into memory. Raises DataError."""
    try:
        with path.open("rb") as file, gzip.open(file) as packed:
            reader = packed if file.peek(2)[:2] == b"\x1f\x8b" else file
            data = reader.read(MOST_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: cannot be unpacked ({error}); the file may be cut short: get it again") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder; name a file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(data) > MOST_BYTES:
        raise DataError(f"{path}: over {MOST_BYTES >> 20:,} MB of text, too large for a data set")
    return data


def parse_json(text: str, path: Path, line: int | None = None) -> Any:
    """The value of a JSON text. `line`: its line number, if the text is one line of a file."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}:{line or getattr(error, 'lineno', 1)}: {json_problem(error)}") from None


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Line numbers and values of a file with one JSON value per line. Blank lines are skipped."""
    for number, line in enumerate(io.StringIO(read_text(path), newline="\n"), 1):
        if line.strip():
            yield number, parse_json(line, path, number)


def kind(value: Any) -> str:
    """What a JSON value is, in words."""
    return NAMES.get(type(value), type(value).__name__)


def join_names(names: Iterable[Any]) -> str:
    """Names for a message: the first eight, then how many more."""
    texts = [str(name) if str(name).isprintable() else repr(name) for name in names]
    return (", ".join(texts[:8]) + (f" and {len(texts) - 8} more" if len(texts) > 8 else "")) or "none"


def is_table(path: Path) -> bool:
    """Whether a file is a table, by its name, which may end in .gz."""
    return _without_gz(path).suffix.lower() in (".csv", *TABS)


def _without_gz(path: Path) -> Path:
    return path.with_suffix("") if path.suffix == ".gz" else path


def rows(path: Path) -> Iterator[tuple[int, Sequence[str]]]:
    """The header and then the rows of a table, each with the number of its last line. Every row has as many cells as
    the header. Cells are separated by commas, those of .tsv and .tab files by tabs. Raises DataError."""
    text = read_text(path)
    delimiter = "\t" if _without_gz(path).suffix.lower() in TABS else ","
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    filled_rows = filter(None, reader)  # without empty lines
    try:
        header = [name.strip() for name in next(filled_rows, [])]
        yield max(1, reader.line_num), header
        for cells in filled_rows:
            if len(cells) != len(header):
                raise DataError(
                    f"{path}:{reader.line_num}: values: {len(cells)}, columns: {len(header)}; put texts with "
                    f"a {'tab' if delimiter != ',' else 'comma'} in quotation marks"
                )
            yield reader.line_num, cells
    except csv.Error as error:
        raise DataError(
            f"{path}:{max(1, reader.line_num)}: its quotation marks, or those of a line before, do not fit: {error}"
        ) from None
