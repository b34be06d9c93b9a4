"""Merge the layers of a recipe, parent < file < profile < --set, read from TOML, with the origin of every value.

A profile may extend another profile, whose values it overrides.

Tables are merged key by key. A table whose `type` changes starts empty, since the keys belong to another part.
"""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, time
from pathlib import Path
from typing import Any

from ..errors import RecipeError
from ..files import foreign
from ..registry import did_you_mean
from .toml_lines import MOST_NAMES, Key, line_of_deep_key, lines
from .training import INSTEAD_OF

DATE = "is a date or a time, which no key takes; put a text in quotes"
LARGE_NUMBER = "the number is too large; whole numbers in TOML have at most 64 bits (19 digits)"


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
    origins: dict[Key, str] = field(default_factory=dict)
    base: Path = Path()
    files: list[str] = field(default_factory=list)
    chain: list[str] = field(default_factory=list)
    defaults: Layered | None = None
    remarks: list[str] = field(default_factory=list)

    def lay(self, table: dict[str, Any], origins: dict[Key, str]) -> None:
        """Merge a table over the present values."""
        self._merge(self.values, table, origins, (), ())

    def _merge(self, below: dict, above: dict, origins: dict[Key, str], source: Key, target: Key) -> None:
        for name, value in above.items():
            source_path, target_path = (*source, name), (*target, name)
            self._drop_alternative(below, above, name, target)
            if isinstance(value, dict):
                old = below.get(name)
                if not isinstance(old, dict) or ("type" in value and value["type"] != old.get("type", value["type"])):
                    self._drop_origins(target_path, name in below)
                    below[name] = {}
                self.origins.setdefault(target_path, origins.get(source_path, ""))
                self._merge(below[name], value, origins, source_path, target_path)
            else:
                self._drop_origins(target_path, name in below)
                below[name] = value
                self.origins[target_path] = Layered(origins=origins).place(source_path)  # of an inline table, its line
                inside = (
                    {key: place for key, place in origins.items() if key[: len(source_path)] == source_path}
                    if _is_table_array(value)
                    else {}
                )
                self.origins |= {(*target_path, *key[len(source_path) :]): place for key, place in inside.items()}

    def _drop_alternative(self, below: dict, above: dict, name: str, table: Key) -> None:
        """Delete the key of [training] that another key replaces, unless one layer has both: that mistake is reported
        later."""
        replaced = INSTEAD_OF.get(name) if table[-1:] == ("training",) else None
        if replaced is not None and replaced in below and replaced not in above:
            del below[replaced]
            self._drop_origins((*table, replaced), True)

    def _drop_origins(self, path: Key, exists: bool) -> None:
        """Delete the origins of a value, or of a table and its content, if it exists."""
        for key in [key for key in self.origins if key[: len(path)] == path] if exists else ():
            del self.origins[key]

    def folder(self, path: Key) -> Path:
        """The folder that a path is relative to: its file's folder, or the current folder for --set."""
        place = self.place(path)
        if not place:
            return self.base
        return Path() if place.startswith("--set ") else Path(place.rpartition(":")[0]).parent

    def place(self, path: Key) -> str:
        """The origin of a value, or of the nearest table around it."""
        while path and not self.origins.get(path):
            path = path[:-1]
        return self.origins.get(path, "") if path else ""

    def depth(self, path: Key) -> int:
        """How many recipes are extended by the file that sets a value; those of --set are deepest."""
        file = self.place(path).rpartition(":")[0]
        return self.files.index(file) if file in self.files else len(self.files)

    def opening(self, path: Key) -> str:
        """The beginning of an error about a value: "my.toml:9: steps.first.start: "."""
        return "".join(f"{word}: " for word in (self.place(path), ".".join(path)) if word)


def read(path: Path, profile: str | None, sets: tuple[str, ...] = ()) -> tuple[Layered, str | None]:
    """All layers of a recipe file, merged, and the profile's name. Raises RecipeError."""
    merged = Layered()
    for table, origins in _read_with_parents(path):
        merged.lay(table, origins)
        merged.files += [place.rpartition(":")[0] for place in origins.values()][:1]
    profiles = merged.values.pop("profiles", {})
    default = merged.values.pop("profile", None)
    merged.defaults = Layered(copy.deepcopy(merged.values), {**merged.origins})
    chosen = profile or default
    if profile:  # errors about its name are about its table
        merged.origins[("profile",)] = merged.place(("profiles", profile))
    if chosen is not None:
        if not isinstance(profiles, dict) or not all(isinstance(table, dict) for table in profiles.values()):
            raise RecipeError(f"{merged.place(('profiles',)) or path}: profiles: must be tables, [profiles.NAME]")
        place = "--profile" if profile else merged.place(("profile",))
        for name in _profile_chain(merged, profiles, chosen, place):
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


def _profile_chain(merged: Layered, profiles: dict[str, Any], chosen: Any, where: str) -> list[str]:
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
    merged = Layered()
    for table, origins in _read_with_parents(path):
        merged.lay(table, origins)
    tables = merged.values.get("profiles", {})
    return [*([] if "profile" in merged.values else [None]), *(tables if isinstance(tables, dict) else ())]


def _is_table_array(value: Any) -> bool:
    """Whether a value is an array of tables; each entry of one has an origin."""
    return isinstance(value, list) and any(isinstance(entry, dict) for entry in value)


def _read_with_parents(
    path: Path, seen: tuple[Path, ...] = (), named_at: str = ""
) -> list[tuple[dict, dict[Key, str]]]:
    """The file's table after its parents', each with its origins. `asked`: the place that names the file, for
    errors."""
    try:
        if path.resolve() in seen:
            raise RecipeError(f"{named_at}{path}: extends itself through {' and '.join(map(str, seen))}")
        text = _decode_recipe(path, path.read_bytes())
    except FileNotFoundError:
        raise RecipeError(
            f"{named_at}{path}: no such recipe; `mmgen init` copies the recipes that come with mmgen into a folder"
        ) from None
    except (OSError, ValueError, RuntimeError) as error:  # a path with a NUL, or a cycle of links
        raise RecipeError(f"{named_at}{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if line := line_of_deep_key(text):
        raise RecipeError(
            f"{path}:{line}: a key has more than {MOST_NAMES} names separated by dots; keys of a recipe have fewer"
        )
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecipeError(_toml_error(path, text, error)) from None
    origins = {key: f"{path}:{line}" for key, line in lines(text).items()}
    _check_values(table, origins)
    parent = table.pop("extends", None)
    if parent is None:
        return [(table, origins)]
    if not isinstance(parent, str):
        raise RecipeError(
            f"{origins.get(('extends',), path)}: extends: must be the path of one recipe, relative to this file"
        )
    named = f"{origins.get(('extends',), path)}: extends: "
    return [*_read_with_parents(path.parent / parent, (*seen, path.resolve()), named), (table, origins)]


def _decode_recipe(path: Path, data: bytes) -> str:
    """A recipe's text, without the byte order mark that some editors write. Raises RecipeError."""
    if what := foreign(data):
        raise RecipeError(f"{path}: {what}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        encoding = "UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "not UTF-8"
        raise RecipeError(f"{path}:{line}: the file is {encoding}; save it as UTF-8") from None


def _toml_error(path: Path, text: str, error: Exception) -> str:
    if not isinstance(error, tomllib.TOMLDecodeError | RecursionError):  # Python does not parse so long a number
        first = re.search("[0-9_]{4000}", text)
        return f"{path}:{text.count(chr(10), 0, first.start()) + 1 if first else 1}: {LARGE_NUMBER}"
    if isinstance(error, RecursionError):
        return f"{path}: not valid TOML: nested too deeply"
    place = re.search(r"\(at line (\d+), column \d+\)", str(error))
    reason = re.sub(r" \(at .*\)", "", str(error))
    return f"{path}:{place[1] if place else 1}: not valid TOML: {reason[:1].lower()}{reason[1:]}"


def setting_table(setting: str, front: str = "") -> tuple[dict, dict[Key, str]]:
    """The table of `a.b=value`, with the value as TOML; a bare word is a string. `front`: a prefix for messages."""
    name, equals, value = setting.partition("=")
    option = f"--set {front}{setting}"
    if not equals or not name.strip() or "\n" in setting:
        raise RecipeError(f"{option}: write a.b=value, with the value as in TOML")
    if line_of_deep_key(setting):
        raise RecipeError(
            f"{option}: a key has more than {MOST_NAMES} names separated by dots; keys of a recipe have fewer"
        )
    try:
        if isinstance(next(iter(tomllib.loads(f"value = {value}").values())), date | time):
            value = f"'{value.strip()}'"  # a bare word too
        table = tomllib.loads(f"{name.strip()} = {value}")
    except tomllib.TOMLDecodeError:
        try:
            table = tomllib.loads(f"{name.strip()} = '''{value}'''")
        except tomllib.TOMLDecodeError as error:
            raise RecipeError(f"{option}: not a TOML value: {error}") from None
    except RecursionError:
        raise RecipeError(f"{option[:60]}: not a TOML value: nested too deeply") from None
    except ValueError:
        raise RecipeError(f"{option[:60]}: {LARGE_NUMBER}") from None
    origins = {key: option for key in _table_paths(table)}
    _check_values(table, origins)
    return table, origins


def _check_values(table: dict[str, Any], origins: dict[Key, str], at: Key = ()) -> None:
    """Raises RecipeError for a whole number that TOML does not allow, and for a date or a time."""
    for name, value in table.items():
        key = (*at, name)
        if isinstance(value, dict):
            _check_values(value, origins, key)
        for scalar in _scalars(value):
            large = isinstance(scalar, int) and not -(2**63) <= scalar < 2**63
            if large or isinstance(scalar, date | time):
                problem = LARGE_NUMBER if large else DATE
                raise RecipeError(f"{origins.get(key, '')[:200]}: {'.'.join(key)}: {problem}")


def _scalars(value: Any) -> Iterator[Any]:
    """A value, or what stands in a list and in the lists and tables inside it."""
    if not isinstance(value, list):
        yield value
        return
    for entry in value:
        for inner in entry.values() if isinstance(entry, dict) else [entry]:
            yield from _scalars(inner)


def settings_of(sets: Iterable[str], names: Iterable[str], kind: str) -> dict[str, tuple[str, ...]]:
    """name -> its settings "key=value", from `sets` such as "name.key=value". `names`: parts of that kind. Raises
    RecipeError for a setting of any other name."""
    settings_by_name: dict[str, list[str]] = {name: [] for name in names}
    for setting in sets:
        name, _, rest = setting.partition(".")
        if name not in settings_by_name or not rest:
            raise RecipeError(
                f"--set {setting}: write {kind.upper()}.KEY=VALUE; the {kind}s are: {', '.join(settings_by_name)}"
            )
        settings_by_name[name].append(rest)
    return {name: tuple(settings) for name, settings in settings_by_name.items()}


def _table_paths(table: dict, at: Key = ()) -> list[Key]:
    paths = []
    for name, value in table.items():
        paths.append((*at, name))
        if isinstance(value, dict):
            paths += _table_paths(value, (*at, name))
    return paths
