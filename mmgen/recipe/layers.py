"""Merge the layers of a recipe, parent < file < profile < --set, read from TOML, with the origin of every value.

A profile may extend another profile, whose values it overrides.

Tables are merged key by key. A table whose `type` changes starts empty, since the keys belong to another part.
"""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import RecipeError, did_you_mean
from ..files import foreign
from .toml_lines import Key, lines

Origins = dict[Key, str]


@dataclass
class Layered:
    """Merged tables, and for every value the place it came from ("recipes/my.toml:9", "--set a.b=1").

    base      the folder of relative paths that have no place
    files     the recipe's files, each after the one that it extends
    chain     the profiles that are applied, in order
    defaults  the tables without profiles and settings
    remarks   a line for every key that is set without effect
    """

    values: dict[str, Any] = field(default_factory=dict)
    origins: Origins = field(default_factory=dict)
    base: Path = Path()
    files: list[str] = field(default_factory=list)
    chain: list[str] = field(default_factory=list)
    defaults: Layered | None = None
    remarks: list[str] = field(default_factory=list)

    def lay(self, table: Mapping[str, Any], origins: Origins) -> None:
        """Merge a table over the present values."""
        self._merge(self.values, table, origins, ())

    def _merge(self, below: dict[str, Any], above: Mapping[str, Any], origins: Origins, at: Key) -> None:
        for name, value in above.items():
            path, old = (*at, name), below.get(name)
            both = old if isinstance(old, dict) and isinstance(value, dict) else None
            if both and "type" in value and value["type"] != both.get("type", value["type"]):
                both = None
            if name in below and both is None:
                self.origins = {key: place for key, place in self.origins.items() if key[: len(path)] != path}
            if isinstance(value, dict):
                below[name] = {} if both is None else both
                self.origins.setdefault(path, origins.get(path, ""))
                self._merge(below[name], value, origins, path)
                continue
            below[name] = value
            self.origins[path] = Layered(origins=origins).place(path)  # of an inline table, its line
            if isinstance(value, list) and any(isinstance(entry, dict) for entry in value):
                self.origins |= {key: place for key, place in origins.items() if key[: len(path)] == path}

    def folder(self, path: Key) -> Path:
        """The folder that a path is relative to: its file's folder, or the current folder for --set."""
        place = self.place(path)
        if not place:
            return self.base
        return Path() if place.startswith("--set ") else Path(place.rpartition(":")[0]).parent

    def written(self, path: Key) -> Key:
        """A path of the checked recipe as the tables have it, without the names that are not in them."""
        value, key = self.values, Key()
        for name in path:
            inner = dict(enumerate(value)) if isinstance(value, list) else value if isinstance(value, dict) else {}
            step = int(name) if isinstance(value, list) and name.isdigit() else name
            if step in inner:
                value, key = inner[step], (*key, name)
        return key

    def key(self, path: Key) -> Key:
        """A path of the checked recipe as its tables have it, with a last key that they may lack."""
        return self.written(path) if path and path[-1].isdigit() else (*self.written(path[:-1]), *path[-1:])

    def place(self, path: Key) -> str:
        """The origin of a value, or of the nearest table around it."""
        while path and not self.origins.get(path):
            path = path[:-1]
        return self.origins.get(path, "")

    def depth(self, path: Key) -> int:
        """How many recipes are extended by the file that sets a value; those of --set are deepest."""
        file = self.place(path).rpartition(":")[0]
        return self.files.index(file) if file in self.files else len(self.files)

    def opening(self, path: Key) -> str:
        """The beginning of an error about a value: "my.toml:9: steps.first.start: "."""
        key = self.key(path)
        return "".join(f"{word}: " for word in (self.place(key), ".".join(key)) if word)


def read(path: Path, profile: str | None, sets: tuple[str, ...] = ()) -> tuple[Layered, str | None]:
    """All layers of a recipe file, merged, and the profile's name. Raises RecipeError."""
    merged = _read_files(path)
    profiles = merged.values.pop("profiles", {})
    chosen = profile or merged.values.get("profile")
    default = merged.place(("profile",))
    merged.values.pop("profile", None)
    merged.defaults = Layered(copy.deepcopy(merged.values), {**merged.origins}, files=merged.files)
    if profile:  # errors about its name are about its table
        merged.origins[("profile",)] = merged.place(("profiles", profile))
    if chosen is not None:
        if not isinstance(profiles, dict) or not all(isinstance(table, dict) for table in profiles.values()):
            raise RecipeError(f"{merged.place(('profiles',)) or path}: profiles: must be tables, [profiles.NAME]")
        for name in _profile_chain(merged, profiles, chosen, "--profile" if profile else default):
            merged.chain.append(name)
            origins = {key[2:]: place for key, place in merged.origins.items() if key[:2] == ("profiles", name)}
            merged.lay({key: value for key, value in profiles[name].items() if key != "extends"}, origins)
    for setting in sets:
        table, origins = setting_table(setting)
        if "profile" in table or "profiles" in table:
            raise RecipeError(f"--set {setting}: choose a profile with --profile")
        merged.lay(table, origins)
    if "profile" in merged.values:
        raise RecipeError(
            f"{merged.place(('profile',)) or path}: profile: a profile cannot select another profile; use extends"
        )
    return merged, chosen


def _profile_chain(merged: Layered, profiles: Mapping[str, Any], chosen: Any, where: str) -> list[str]:
    """A profile, preceded by those that it extends. `where`: the place that names it. Raises RecipeError."""
    chain: list[str] = []
    while chosen is not None:
        if not isinstance(chosen, str) or chosen not in profiles:
            raise RecipeError(
                f"{where}: unknown profile '{chosen}'{did_you_mean(str(chosen), profiles)}; choose from: "
                f"{', '.join(profiles) or 'none'}"
            )
        if chosen in chain:
            raise RecipeError(f"{where}: the profile '{chosen}' extends itself through {' and '.join(chain)}")
        chain.append(chosen)
        where = f"{merged.place(('profiles', chosen, 'extends'))}: profiles.{chosen}.extends"
        chosen = profiles[chosen].get("extends")
    return chain[::-1]


def profiles(path: Path) -> list[str | None]:
    """The names of a recipe's profiles, including those of its parents. Before them None, the recipe without a profile,
    unless it names one itself."""
    values = _read_files(path).values
    tables = values.get("profiles", {})
    return [*([] if "profile" in values else [None]), *(tables if isinstance(tables, dict) else ())]


def _read_files(path: Path) -> Layered:
    """A recipe over those that it extends."""
    merged = Layered()
    for table, origins in _read_with_parents(path):
        merged.lay(table, origins)
        merged.files += [place.rpartition(":")[0] for place in origins.values()][:1]
    return merged


def _read_with_parents(
    path: Path, seen: tuple[Path, ...] = (), named_at: str = ""
) -> Iterator[tuple[dict[str, Any], Origins]]:
    """The file's table after its parents', each with its origins. `named_at`: the place that names the file, for
    errors."""
    try:
        if path.resolve() in seen:
            raise RecipeError(f"{named_at}{path}: extends itself through {' and '.join(map(str, seen))}")
        text = _decode(path, path.read_bytes())
    except FileNotFoundError:
        raise RecipeError(
            f"{named_at}{path}: no such recipe; `mmgen init` copies the recipes that come with mmgen into a folder"
        ) from None
    except (OSError, ValueError, RuntimeError) as error:  # a path with a NUL, or a cycle of links
        raise RecipeError(f"{named_at}{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        line = re.search(r" \(at line (\d+), column \d+\)", str(error))
        place = f"{path}:{line[1]}" if line else str(path)
        raise RecipeError(f"{place}: not valid TOML: {_toml_problem(error)}") from None
    origins = {key: f"{path}:{line}" for key, line in lines(text).items()}
    parent = table.pop("extends", None)
    if parent is not None:
        named_at = f"{origins.get(('extends',), path)}: extends: "
        if not isinstance(parent, str):
            raise RecipeError(f"{named_at}must be the path of one recipe, relative to this file")
        yield from _read_with_parents(path.parent / parent, (*seen, path.resolve()), named_at)
    yield table, origins


def _decode(path: Path, data: bytes) -> str:
    """A recipe's text, without the byte order mark that some editors write. Raises RecipeError."""
    if what := foreign(data):
        raise RecipeError(f"{path}: {what}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        encoding = "UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "not UTF-8"
        raise RecipeError(f"{path}:{line}: the file is {encoding}; save it as UTF-8") from None


def _toml_problem(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if not isinstance(error, tomllib.TOMLDecodeError):  # Python does not parse so long a number
        return "a number has too many digits"
    reason = re.sub(r" \(at .*\)", "", str(error))
    return f"{reason[:1].lower()}{reason[1:]}"


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
        raise RecipeError(f"{option[:60]}: not a TOML value: {_toml_problem(error)}") from None
    return table, dict.fromkeys(_table_paths(table), option)


def settings_of(sets: Iterable[str], names: Iterable[str], kind: str) -> dict[str, tuple[str, ...]]:
    """name -> its settings "key=value", from `sets` such as "name.key=value". `names`: parts of that kind. Raises
    RecipeError for a setting of any other name."""
    settings_by_name: dict[str, tuple[str, ...]] = dict.fromkeys(names, ())
    for setting in sets:
        name, _, rest = setting.partition(".")
        if name not in settings_by_name or not rest:
            raise RecipeError(
                f"--set {setting}: write {kind.upper()}.KEY=VALUE; the {kind}s are: {', '.join(settings_by_name)}"
            )
        settings_by_name[name] += (rest,)
    return settings_by_name


def _table_paths(table: Mapping[str, Any], at: Key = ()) -> Iterator[Key]:
    for name, value in table.items():
        yield (*at, name)
        if isinstance(value, dict):
            yield from _table_paths(value, (*at, name))
