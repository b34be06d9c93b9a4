"""Text and JSON that others wrote: whatever is wrong becomes one DataError that names the file and the place in it."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..files import image_key, read_bytes

LONGEST = 1_000_000  # letters of a text; a tokenizer takes minutes for a hundred times as many
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
    """A UTF-8 file's text, unpacked where it is gzipped, without a byte-order mark. Raises DataError."""
    data = unpacked(path)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"{path}:1: this is UTF-16; save the file as UTF-8")
    if b"\0" in data:
        raise DataError(f"{path}:{_line(data, data.index(0))}: a NUL byte; the file is damaged, or not a text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # the error counts from behind a byte-order mark, which holds no line's end
        raise DataError(f"{path}:{_line(error.object, error.start)}: not UTF-8; save the file as UTF-8") from None


def unpacked(path: Path) -> bytearray:
    """A file's bytes, unpacked where it is gzipped. Raises DataError."""
    try:
        return read_bytes(path, "a published data set")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: cannot be unpacked ({error}); it may be cut short: get it again") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def _line(data: bytes | bytearray, position: int) -> int:
    return data.count(b"\n", 0, position) + 1


def parse_json(text: str, path: Path, line: int | None = None) -> Any:
    """The value of a JSON text; `line` is where it stands in its file, when it is a line of one."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        cut = line is None and (error.pos >= len(text.rstrip()) - 1 or error.msg.startswith("Unterminated"))
        advice = "; the file may be cut short: get it again" if cut else ""
        raise DataError(
            f"{path}:{line or error.lineno}: not valid JSON: {error.msg} (column {error.colno}){advice}"
        ) from None
    except (RecursionError, ValueError) as error:  # nested without end, or a number without end
        raise DataError(f"{path}:{line or 1}: not usable JSON: {error}") from None


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Numbered values of a file with one JSON value a line; empty lines are passed over."""
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip():
            yield number, parse_json(line, path, number)


def listed(path: Path, name: str, what: str, bare: bool = False) -> tuple[dict[str, Any], list[Any]]:
    """The table in a JSON file and the list that it holds under `name`; `what` the file is said to be in errors.
    `bare`: the list may also stand alone, as in a captioner's results."""
    table = parse_json(read_text(path), path)
    if bare and isinstance(table, list):
        return {}, table
    if not isinstance(table, dict) or not isinstance(table.get(name), list):
        found = f"its keys are: {shown(table)}" if isinstance(table, dict) else f"it is {kind(table)}"
        raise DataError(f"{path}: not a file of {what}: it has no list '{name}' ({found})")
    return table, table[name]


def each(items: Iterable[Any], path: Path, name: str, take: Callable[[Any], None]) -> None:
    """Hand the items of a file's list to `take`; a DataError that it raises gets the item's place in front."""
    for number, item in enumerate(items):
        try:
            take(item)
        except DataError as error:
            raise DataError(f"{path}: {name}[{number}]: {error}") from None


def wanted(item: Any, *names: str) -> None:
    """Raise DataError unless `item` is a table with these keys."""
    if not isinstance(item, dict):
        raise DataError(f"must be a table with {shown(names)}, not {kind(item)}")
    for name in names:
        if name not in item:
            raise DataError(f"has no '{name}'; its keys are: {shown(item)}")


def tidy(value: Any, name: str) -> str:
    """A text on one line, without blanks at its ends; `name` is what errors call it."""
    if not isinstance(value, str):
        raise DataError(f"{name} must be a text, not {kind(value)}")
    if len(value) > LONGEST:
        raise DataError(f"{name} has {len(value):,} letters, and may have {LONGEST:,}; the file is damaged")
    text = " ".join(value.split())
    if not text.isprintable():
        for character in text:
            if character == "\0" or "\ud800" <= character <= "\udfff":
                raise DataError(f"{name} holds {character!r}, which is no character; the file is damaged")
    return text


def image_id(value: Any, name: str, plain: bool = False) -> str:
    """An id as a text: a number as its digits, a file's name as the key of its image (unless `plain`)."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise DataError(f"{name} must be a number or a text, not {kind(value)}")
    text = tidy(value, name)
    if not text:
        raise DataError(f"{name} is empty")
    return text if plain else image_key(text)


def kind(value: Any) -> str:
    """What a JSON value is, in words."""
    return NAMES.get(type(value), type(value).__name__)


def shown(names: Iterable[Any]) -> str:
    """Names for an error text, cut to a readable number."""
    texts = [str(name) if str(name).isprintable() else repr(name) for name in names]
    return (", ".join(texts[:8]) + (f" and {len(texts) - 8} more" if len(texts) > 8 else "")) or "none"
