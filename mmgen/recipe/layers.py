"""Merge the layers of a recipe, parent < file < profile < --set, read from TOML, with the origin of every value.

A profile may extend another profile, whose values it overrides.

Tables are merged key by key. A table whose `type` changes starts empty, since the keys belong to another part.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import RecipeError, unknown
from ..files import json_problem
from .toml_lines import Key, lines

Origins = dict[Key, str]


@dataclass
class Layered:
    """Merged tables, and for every value the place it came from ("recipes/my.toml:9", "--set a.b=1").

    base   the folder of relative paths that have no place
    files  the recipe's files, each after the one that it extends
    """

    values: dict[str, Any] = field(default_factory=dict)
    origins: Origins = field(default_factory=dict)
    base: Path = Path()
    files: list[str] = field(default_factory=list)

    def lay(
        self, above: Mapping[str, Any], origins: Origins, at: Key = (), below: dict[str, Any] | None = None
    ) -> None:
        """Merge a table over the present values. `at`: its path; `below`: the present table there."""
        below = self.values if below is None else below
        for name, value in above.items():
            path, place = (*at, name), origins.get((*at, name)) or origins[()]
            old: Any = below.get(name)
            both = isinstance(old, dict) and isinstance(value, dict)
            if not both or old.get("type", value.get("type")) != value.get("type", old.get("type")):
                self.origins = {key: origin for key, origin in self.origins.items() if key[: len(path)] != path}
                below[name] = {} if isinstance(value, dict) else value
            self.origins.setdefault(path, place)
            if isinstance(value, dict):
                self.lay(value, origins, path, below[name])
            elif isinstance(value, list):
                self.origins |= {key: place for key, place in origins.items() if key[: len(path)] == path}

    def folder(self, path: Key) -> Path:
        """The folder that a path is relative to: its file's folder, or the current folder for --set."""
        place = self.place(path)
        if not place:
            return self.base
        return Path() if place.startswith("--set ") else Path(place.rpartition(":")[0]).parent

    def key(self, path: Key) -> Key:
        """Where a key of the checked recipe is written: what a step has inherited, in the recipe's table."""
        of_step = path in self.origins or path[:1] != ("steps",) or path[2:3] not in (("training",), ("decoding",))
        return path if of_step else path[2:]

    def place(self, path: Key) -> str:
        """The origin of a value, or of the nearest table around it."""
        while path and not self.origins.get(path):
            path = path[:-1]
        return self.origins.get(path, "")

    def opening(self, path: Key, source: str = "") -> str:
        """The beginning of an error about a value, "my.toml:9: steps.first.start: ". `source`: for a value without a
        place."""
        key = self.key(path)
        return "".join(f"{word}: " for word in (self.place(key) or source, ".".join(key)) if word)


def read(path: Path, profile: str | None, sets: tuple[str, ...] = ()) -> Layered:
    """All layers of a recipe file, merged. Raises RecipeError."""
    merged, tables = _read_files(path)
    default, where = merged.values.pop("profile", None), "--profile" if profile else merged.place(("profile",))
    for name in _profile_chain(merged, tables, profile or default, where):
        origins = {key[2:]: place for key, place in merged.origins.items() if key[:2] == ("profiles", name)}
        merged.lay({key: value for key, value in tables[name].items() if key != "extends"}, origins)
    for setting in sets:
        merged.lay(*setting_table(setting))
    if "profile" in merged.values:
        raise RecipeError(
            f"{merged.place(('profile',))}: profile: choose one with --profile, or extend one with extends"
        )
    merged.values["profile"] = profile or default
    return merged


def _profile_chain(merged: Layered, tables: Mapping[str, Any], name: Any, where: str) -> list[str]:
    """A profile, preceded by those that it extends. `where`: the place that names it. Raises RecipeError."""
    chain: list[str] = []
    while name is not None:
        if problem := unknown(str(name), tables):
            raise RecipeError(f"{where}: profile: {problem}")
        if name in chain:
            raise RecipeError(f"{where}: the profile '{name}' extends itself through {' and '.join(chain)}")
        chain.append(name)
        where = f"{merged.place(('profiles', name, 'extends'))}: profiles.{name}.extends"
        name = tables[name].get("extends")
    return chain[::-1]


def profiles(path: Path) -> list[str | None]:
    """The names of a recipe's profiles, including those of its parents. Before them None, the recipe without a profile,
    unless it names one itself."""
    merged, tables = _read_files(path)
    return [*([] if "profile" in merged.values else [None]), *tables]


def _read_files(path: Path) -> tuple[Layered, dict[str, Any]]:
    """A recipe over those that it extends, and its profiles. Raises RecipeError."""
    merged = Layered()
    _read_file(path, merged)
    tables = merged.values.pop("profiles", {})
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise RecipeError(f"{merged.place(('profiles',)) or path}: profiles: must be tables, [profiles.NAME]")
    return merged, tables


def _read_file(path: Path, merged: Layered, named_at: str = "") -> None:
    """Lay a recipe over those that it extends. `named_at`: the place that names the file, for errors."""
    try:
        table = tomllib.loads(text := path.read_bytes().decode("utf-8-sig"))  # some editors write a byte order mark
    except FileNotFoundError:
        raise RecipeError(
            f"{named_at}{path}: no such recipe; `mmgen init` copies the recipes that come with mmgen into a folder"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        line = re.search(r" \(at line (\d+), column \d+\)", str(error))
        raise RecipeError(f"{named_at}{path}{f':{line[1]}' if line else ''}: {_problem(error)}") from None
    origins = {key: f"{path}:{line}" for key, line in lines(text).items()}
    parent = table.pop("extends", None)
    named_at = f"{origins.get(('extends',), path)}: extends: "
    merged.files.insert(0, str(path))
    if parent is not None:
        if not isinstance(parent, str):
            raise RecipeError(f"{named_at}must be the path of one recipe, relative to this file")
        if str(path.parent / parent) in merged.files:
            raise RecipeError(f"{named_at}{parent}: the recipes extend each other")
        _read_file(path.parent / parent, merged, named_at)
    merged.lay(table, origins)


def _problem(error: Exception) -> str:
    """Why a recipe or a setting cannot be read."""
    if not isinstance(error, tomllib.TOMLDecodeError):
        return f"cannot be read: {json_problem(error)}"
    reason = re.sub(r" \(at .*\)", "", str(error))
    return f"not valid TOML: {reason[:1].lower()}{reason[1:]}"


def setting_table(setting: str, front: str = "") -> tuple[dict[str, Any], Origins]:
    """The table of `a.b=value`, with the value as TOML; a bare word is a string. `front`: a prefix for messages."""
    name, equals, value = setting.partition("=")
    option = f"--set {front}{setting}"
    if not equals or not name.strip() or "\n" in setting:
        raise RecipeError(f"{option}: write a.b=value, with the value as in TOML")
    try:
        try:
            table = tomllib.loads(f"{name.strip()} = {value}")
        except tomllib.TOMLDecodeError:
            table = tomllib.loads(f"{name.strip()} = '''{value.strip()}'''")
    except (ValueError, RecursionError) as error:
        raise RecipeError(f"{option[:60]}: {_problem(error)}") from None
    return table, {(): option}
