"""The line of every key of a TOML text, for error messages; tomllib does not keep line numbers."""

from __future__ import annotations

import tomllib
from typing import Any

Key = tuple[str, ...]  # the path of a value: ("steps", "both", "epochs")


def lines(text: str) -> dict[Key, int]:
    """The line of every key and table of a valid TOML text, which is parsed statement by statement. Tables in a list
    are numbered from 0: ("data", "0", "type")."""
    numbers: dict[Key, int] = {}
    lists: dict[Key, int] = {}  # array of tables -> the number of its last entry
    header, statement, start = Key(), "", 1

    def note(path: Key, value: Any, line: int) -> None:
        numbers.setdefault(path, line)
        for name, inner in value.items() if isinstance(value, dict) else ():
            note((*path, name), inner, line)
        for entry, inner in enumerate(value) if isinstance(value, list) else ():
            if isinstance(inner, dict):
                note((*path, str(entry)), inner, number)

    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        statement += f"{line}\n"
        table = _parse(statement)
        if table is not None and statement.lstrip().startswith("["):
            header = Key()
            while table:
                ((name, table),) = table.items()
                header = (*header, name)
                numbers.setdefault(header, number)
                if isinstance(table, list):
                    lists[header], table = lists.get(header, -1) + 1, {}
                if header in lists:
                    header = (*header, str(lists[header]))
                    numbers.setdefault(header, number)
        else:  # in a list over several lines, the entries so far
            for name, value in ((_parse(f"{statement}]") if table is None else table) or {}).items():
                note((*header, name), value, start)
        if table is not None:
            statement, start = "", number + 1
    return numbers


def _parse(statement: str) -> Any:
    try:
        return tomllib.loads(statement)
    except tomllib.TOMLDecodeError:
        return None
