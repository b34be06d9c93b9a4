"""Layers of a recipe: parent < file < profile < --set. Which value counts, and which layer it came from. A profile may
extend another, over which it is laid.

Tables are merged key by key; a table whose `type` changes starts afresh, since another part's keys mean nothing to it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import RecipeError, regular
from ..registry import did_you_mean
from .toml_lines import MOST_NAMES, Key, lines, too_deep
from .training import INSTEAD_OF


@dataclass
class Layered:
    """Merged tables, and for every value the place it came from ("recipes/my.toml:9", "--set a.b=1").

    base  where paths count from whose place is not known
    """

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[Key, str] = field(default_factory=dict)
    base: Path = Path()

    def lay(self, table: dict[str, Any], origins: dict[Key, str], at: Key = ()) -> None:
        """Lay a table over what is there."""
        self._merge(self.values, table, origins, at, at)

    def _merge(self, below: dict, above: dict, origins: dict[Key, str], source: Key, target: Key) -> None:
        for name, value in above.items():
            here, there = (*source, name), (*target, name)
            self._replace(below, above, name, target)
            if isinstance(value, dict):
                old = below.get(name)
                if not isinstance(old, dict) or ("type" in value and value["type"] != old.get("type", value["type"])):
                    self._drop(there, name in below)
                    below[name] = {}
                self.origins.setdefault(there, origins.get(here, ""))
                self._merge(below[name], value, origins, here, there)
            else:
                self._drop(there, name in below)
                below[name] = value
                self.origins[there] = origins.get(here, "")
                inside = (
                    {key: place for key, place in origins.items() if key[: len(here)] == here} if _tables(value) else {}
                )
                self.origins |= {(*there, *key[len(here) :]): place for key, place in inside.items()}

    def _replace(self, below: dict, above: dict, name: str, table: Key) -> None:
        """Take away what a key of [training] stands in place of, unless its layer has that as well: a mistake, told
        later."""
        other = INSTEAD_OF.get(name) if table[-1:] == ("training",) else None
        if other is not None and other in below and other not in above:
            del below[other]
            self._drop((*table, other), True)

    def _drop(self, path: Key, there: bool) -> None:
        """Forget where a value (or a table with all inside) came from, if it is there."""
        for key in [key for key in self.origins if key[: len(path)] == path] if there else ():
            del self.origins[key]

    def folder(self, path: Key) -> Path:
        """Where a path counts from: its file's folder; the current one where --set gives it."""
        place = self.place(path)
        if not place:
            return self.base
        return Path() if place.startswith("--set ") else Path(place.rpartition(":")[0]).parent

    def place(self, path: Key) -> str:
        """Where a value, or the nearest table around it, was written."""
        while path and not self.origins.get(path):
            path = path[:-1]
        return self.origins.get(path, "") if path else ""

    def opening(self, path: Key) -> str:
        """How an error about a value begins: "my.toml:9: steps.first.start: "."""
        return "".join(f"{each}: " for each in (self.place(path), ".".join(path)) if each)


def read(path: Path, profile: str | None, sets: tuple[str, ...] = ()) -> tuple[Layered, str | None]:
    """All layers of a recipe file, merged, and the profile's name. Raises RecipeError."""
    merged = Layered()
    for table, origins in _files(path):
        merged.lay(table, origins)
    profiles = merged.values.pop("profiles", {})
    default = merged.values.pop("profile", None)
    chosen = profile or default
    if chosen is not None:
        if not isinstance(profiles, dict) or not all(isinstance(table, dict) for table in profiles.values()):
            raise RecipeError(f"{merged.place(('profiles',)) or path}: profiles: must be tables, [profiles.NAME]")
        for name in _extended(merged, profiles, chosen, "--profile" if profile else merged.place(("profile",))):
            origins = {key[2:]: place for key, place in merged.origins.items() if key[:2] == ("profiles", name)}
            merged.lay({key: value for key, value in profiles[name].items() if key != "extends"}, origins)
    for setting in sets:
        table, origins = setting_table(setting)
        if "profile" in table or "profiles" in table:
            raise RecipeError(f"--set {setting}: choose a profile with --profile")
        merged.lay(table, origins)
    if "profile" in merged.values:
        raise RecipeError(f"{merged.place(('profile',)) or path}: profile: a profile cannot name another")
    return merged, chosen


def _extended(merged: Layered, profiles: dict[str, Any], chosen: Any, where: str) -> list[str]:
    """A profile after those that it extends. `where`: the place that names it. Raises RecipeError."""
    found: list[str] = []
    while chosen is not None:
        if not isinstance(chosen, str) or chosen not in profiles:
            raise RecipeError(
                f"{where}: there is no profile '{chosen}'{did_you_mean(str(chosen), profiles)}; there are: "
                f"{', '.join(profiles) or 'none'}"
            )
        if chosen in found:
            raise RecipeError(f"{where}: the profile '{chosen}' extends itself, by way of {' and '.join(found)}")
        found.append(chosen)
        where = f"{merged.place(('profiles', chosen, 'extends'))}: profiles.{chosen}.extends"
        chosen = profiles[chosen].get("extends")
    return found[::-1]


def profiles(path: Path) -> list[str]:
    """Names of a recipe's profiles, its parents' among them."""
    merged = Layered()
    for table, origins in _files(path):
        merged.lay(table, origins)
    found = merged.values.get("profiles", {})
    return list(found) if isinstance(found, dict) else []


def _tables(value: Any) -> bool:
    """Whether a value is an array of tables, whose entries have places of their own."""
    return isinstance(value, list) and any(isinstance(entry, dict) for entry in value)


def _files(path: Path, seen: tuple[Path, ...] = (), asked: str = "") -> list[tuple[dict, dict[Key, str]]]:
    """The file's table after its parents', each with its origins. `asked`: the place that names the file, for
    errors."""
    try:
        if path.resolve() in seen:
            raise RecipeError(f"{asked}{path}: extends itself, by way of {' and '.join(map(str, seen))}")
        text = _decoded(path, regular(path).read_bytes())
    except FileNotFoundError:
        raise RecipeError(
            f"{asked}{path}: no such recipe; `mmgen init` copies the ones that come with mmgen into a folder"
        ) from None
    except (OSError, ValueError, RuntimeError) as error:  # a path that holds a NUL, or links that go in a circle
        raise RecipeError(f"{asked}{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if line := too_deep(text):
        raise RecipeError(f"{path}:{line}: a key has more than {MOST_NAMES} names; no key of a recipe has as many")
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise RecipeError(_toml_error(path, error)) from None
    origins = {key: f"{path}:{line}" for key, line in lines(text).items()}
    parent = table.pop("extends", None)
    if parent is None:
        return [(table, origins)]
    if not isinstance(parent, str):
        raise RecipeError(f"{origins.get(('extends',), path)}: extends: give one recipe's path, relative to this file")
    named = f"{origins.get(('extends',), path)}: extends: "
    return [*_files(path.parent / parent, (*seen, path.resolve()), named), (table, origins)]


def _decoded(path: Path, data: bytes) -> str:
    """A recipe's text; a byte order mark, which some editors write, is no part of it. Raises RecipeError."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        other = "UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "not UTF-8"
        raise RecipeError(f"{path}:{line}: the file is {other}; save it as UTF-8") from None


def _toml_error(path: Path, error: Exception) -> str:
    place = re.search(r"\(at line (\d+), column \d+\)", str(error))
    reason = re.sub(r" \(at .*\)", "", str(error))
    return f"{path}:{place[1] if place else 1}: not valid TOML: {reason[:1].lower()}{reason[1:]}"


def setting_table(setting: str, front: str = "") -> tuple[dict, dict[Key, str]]:
    """`a.b=value`, the value as TOML; a bare word is taken as a string. `front`: what stood before it, for messages."""
    name, equals, value = setting.partition("=")
    given = f"--set {front}{setting}"
    if not equals or not name.strip() or "\n" in setting:
        raise RecipeError(f"{given}: write it as a.b=value, the value as in TOML")
    if too_deep(setting):
        raise RecipeError(f"{given}: a key has more than {MOST_NAMES} names; no key of a recipe has as many")
    try:
        table = tomllib.loads(f"{name.strip()} = {value}")
    except tomllib.TOMLDecodeError:
        try:
            table = tomllib.loads(f"{name.strip()} = '''{value}'''")
        except tomllib.TOMLDecodeError as error:
            raise RecipeError(f"{given}: not a TOML value: {error}") from None
    except RecursionError as error:
        raise RecipeError(f"{given}: not a TOML value: {error}") from None
    return table, {key: given for key in _paths(table)}


def settings_of(sets: Iterable[str], names: Iterable[str], kind: str) -> dict[str, tuple[str, ...]]:
    """name -> its settings "key=value", from `sets` such as "name.key=value". Raises RecipeError for a setting of none
    of the names, which are parts of that kind."""
    own: dict[str, list[str]] = {name: [] for name in names}
    for setting in sets:
        name, _, rest = setting.partition(".")
        if name not in own or not rest:
            raise RecipeError(f"--set {setting}: write {kind.upper()}.KEY=VALUE; the {kind}s are: {', '.join(own)}")
        own[name].append(rest)
    return {name: tuple(settings) for name, settings in own.items()}


def _paths(table: dict, at: Key = ()) -> list[Key]:
    found = []
    for name, value in table.items():
        found.append((*at, name))
        if isinstance(value, dict):
            found += _paths(value, (*at, name))
    return found
