"""The line of every key of a TOML text, for error messages: tomllib keeps none."""

from __future__ import annotations

import re

Key = tuple[str, ...]  # the path of a value: ("steps", "both", "epochs")

_KEY = re.compile(
    r"""\s*((?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*'))*)\s*(=|\])"""
)


_NAME = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")


MOST_NAMES = 32  # of a key; tomllib takes minutes for thousands, and what goes down into the tables gives up
_NAMES = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_DEEP = re.compile(rf"(?<![\w-])(?:{_NAMES}[ \t]*\.[ \t]*){{{MOST_NAMES},}}+{_NAMES}[ \t]*[=\]]")


def too_deep(text: str) -> int | None:
    """The line of a key or table of more than `MOST_NAMES` names ("a.b.c" has three); None where there is none."""
    found = _DEEP.search(text)
    return text.count("\n", 0, found.start()) + 1 if found else None


def lines(text: str) -> dict[Key, int]:
    """The line of every key and table of a TOML text (tomllib keeps none). Entries of an array of tables are numbered
    from 0: ("data", "0", "type"). Inside of values over several lines, only such entries are looked for."""
    found: dict[Key, int] = {}
    arrays: dict[Key, int] = {}  # array of tables -> the number of its last entry
    table, path = Key(), Key()
    depth, entries, quotes = 0, 0, ""  # open brackets, entries, or the triple quote, of a value over several lines
    for number, line in enumerate(text.splitlines(), 1):
        if quotes:
            quotes = "" if quotes in line else quotes
            continue
        if depth > 0:
            depth, more = _opened(line, depth)
            found |= {(*path, str(entries + each)): number for each in range(more)}
            entries += more
            continue
        header = line.lstrip().startswith("[")
        match = _KEY.match(line.lstrip().lstrip("[") if header else line)
        if not match:
            continue
        names = tuple(name.strip("\"'") for name in _NAME.findall(match[1]))
        if header:
            table = _table(names, arrays, line.lstrip().startswith("[["))
        path = table if header else (*table, *names)
        for size in range(1, len(path) + 1):
            found.setdefault(path[:size], number)
        if not header:
            value = line.lstrip()[match.end() :]
            quotes = next((q for q in ('"' * 3, "'" * 3) if value.count(q) % 2), "")
            depth, entries = (0, 0) if quotes else _opened(value, 0)
            found |= {(*path, str(each)): number for each in range(entries)}
    return found


def _table(names: Key, arrays: dict[Key, int], another: bool) -> Key:
    """The path of a table's header. `another`: it begins an entry of an array."""
    path = Key()
    for place, name in enumerate(names):
        path = (*path, name)
        if another and place == len(names) - 1:
            arrays[path] = arrays.get(path, -1) + 1
        path = (*path, str(arrays[path])) if path in arrays else path
    return path


def _opened(line: str, depth: int) -> tuple[int, int]:
    """How many brackets are open behind a line, and how many tables begin in it that are an array's entries."""
    entries = 0
    for sign in re.sub(r"\"(?:\\.|[^\"\\])*\"|'[^']*'|#.*", "", line):
        entries += sign == "{" and depth == 1
        depth += (sign in "[{") - (sign in "]}")
    return max(0, depth), entries
