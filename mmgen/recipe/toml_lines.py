"""The line of every key of a TOML text, for error messages; tomllib does not keep line numbers."""

from __future__ import annotations

import re

Key = tuple[str, ...]  # the path of a value: ("steps", "both", "epochs")

_NAME = r"""[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*'"""
_KEY = re.compile(rf"\s*((?:{_NAME})(?:\s*\.\s*(?:{_NAME}))*)\s*(=|\])")


def lines(text: str) -> dict[Key, int]:
    """The line of every key and table of a TOML text. Entries of an array of tables are numbered from 0: ("data", "0",
    "type"). Inside values over several lines, only such entries have lines."""
    numbers: dict[Key, int] = {}
    arrays: dict[Key, int] = {}  # array of tables -> the number of its last entry
    table, path = Key(), Key()
    depth, entries, quotes = 0, 0, ""  # open brackets, entries, or the triple quote, of a value over several lines
    for number, line in enumerate(text.split("\n"), 1):
        if quotes:
            quotes = "" if quotes in line else quotes
            continue
        if depth > 0:
            depth, more = _open_brackets(line, depth)
            numbers |= {(*path, str(entries + entry)): number for entry in range(more)}
            entries += more
            continue
        header = line.lstrip().startswith("[")
        match = _KEY.match(line.lstrip().lstrip("[") if header else line)
        if not match:
            continue
        names = tuple(name.strip("\"'") for name in re.findall(_NAME, match[1]))
        if header:
            table = _table_path(names, arrays, line.lstrip().startswith("[["))
        path = table if header else (*table, *names)
        for size in range(1, len(path) + 1):
            numbers.setdefault(path[:size], number)
        if not header:
            value = line.lstrip()[match.end() :]
            quotes = next((q for q in ('"' * 3, "'" * 3) if value.count(q) % 2), "")
            depth, entries = (0, 0) if quotes else _open_brackets(value, 0)
            numbers |= {(*path, str(entry)): number for entry in range(entries)}
    return numbers


def _table_path(names: Key, arrays: dict[Key, int], another: bool) -> Key:
    """The path of a table's header. `another`: the header begins an entry of an array."""
    path = Key()
    for place, name in enumerate(names):
        path = (*path, name)
        if another and place == len(names) - 1:
            arrays[path] = arrays.get(path, -1) + 1
        path = (*path, str(arrays[path])) if path in arrays else path
    return path


def _open_brackets(line: str, depth: int) -> tuple[int, int]:
    """The number of open brackets after a line, and of tables that begin in the line as entries of an array."""
    entries = 0
    for sign in re.sub(r"\"(?:\\.|[^\"\\])*\"|'[^']*'|#.*", "", line):
        entries += sign == "{" and depth == 1
        depth += (sign in "[{") - (sign in "]}")
    return max(0, depth), entries
