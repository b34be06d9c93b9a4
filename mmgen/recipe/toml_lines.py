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
    """The line of every key and table of a TOML text (tomllib keeps none). Values over several lines are passed
    over."""
    found: dict[Key, int] = {}
    table: Key = ()
    depth, quotes = 0, ""  # open brackets, or the triple quote, of a value over several lines
    for number, line in enumerate(text.splitlines(), 1):
        if quotes:
            quotes = "" if quotes in line else quotes
            continue
        if depth > 0:
            depth += _brackets(line)
            continue
        header = line.lstrip().startswith("[")
        match = _KEY.match(line.lstrip().lstrip("[") if header else line)
        if not match:
            continue
        names = tuple(name.strip("\"'") for name in _NAME.findall(match[1]))
        if header:
            table = names
        path = names if header else (*table, *names)
        for size in range(1, len(path) + 1):
            found.setdefault(path[:size], number)
        if not header:
            value = line.lstrip()[match.end() :]
            quotes = next((q for q in ('"' * 3, "'" * 3) if value.count(q) % 2), "")
            depth = 0 if quotes else max(0, _brackets(value))
    return found


def _brackets(line: str) -> int:
    bare = re.sub(r"\"(?:\\.|[^\"\\])*\"|'[^']*'|#.*", "", line)
    return bare.count("[") + bare.count("{") - bare.count("]") - bare.count("}")
