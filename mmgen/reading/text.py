"""Reads text, gzip and JSON from anywhere; faults name file and place."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..files import foreign, json_problem

MOST_BYTES = 1 << 30  # of an unpacked text; the largest published caption file has a tenth of this
LONGEST = 1_000_000  # characters of a text; a tokenizer takes minutes for a hundred times as many
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
    if what := foreign(data):
        raise DataError(f"{path}: {what}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1  # counted from after a byte-order mark, which has no line break
        raise DataError(f"{path}:{line}: the encoding is not UTF-8; save the file as UTF-8") from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise DataError(f"{path}:{line}: contains a NUL byte; the file is damaged or is not a text file")
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
