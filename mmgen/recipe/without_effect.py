"""Keys of a recipe without effect: a recipe that it extends sets another value, in a profile or for steps, or another
key of the table decides. The order of layers stays; `mmgen check` and `mmgen run` name such keys."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .layers import Layered
from .tables import Recipe, placed_parts
from .toml_lines import Key
from .training import OVERRIDDEN_BY

NOT_FOR_TRAINING = ((), ("validation_split",), ("test_split",))  # below [data], what the data of a step do not replace


def keys_without_effect(layers: Layered, recipe: Recipe | None = None) -> list[str]:
    """A line for every key that is set without effect. A key that its own file overrides, in a profile or for a step,
    is a default, and gives no line; nor does one of a recipe that this one extends. `recipe`: the checked recipe;
    without it, as for tables with mistakes, keys that another key of their table replaces give no line."""
    lines, defaults, steps = list[str](), layers.defaults or Layered(), _table(layers, "steps")
    for path in _leaves(defaults.values):
        lines += _replaced(layers, defaults, path, path)
    for table in ("training", "decoding"):
        for key in _table(layers, table):
            lines += _replaced(layers, layers, _deepest(layers, (table, key)), (table, key), steps)
    if data := [key for key in layers.origins if key[:1] == ("data",) and key[1:2] not in NOT_FOR_TRAINING]:
        lines += _replaced(layers, layers, max(data, key=layers.depth), ("data",), steps, " the training of")
    return [*dict.fromkeys([*lines, *_replaced_by_another(layers, recipe)])] if recipe else lines


def _replaced(
    layers: Layered, set_in: Layered, path: Key, below: Key, steps: Iterable[str] = (), what: str = ""
) -> Iterator[str]:
    """A line for a key if an extended recipe decides in its place, for the recipe or for some of `steps`. `below`: the
    key or table that has the value, in the recipe or in the table of a step."""
    deciding, names = dict[str, Key](), [*steps] or [""]
    for name in names:
        by = _deciding_key(layers.values, ("steps", name, *below) if name else below)
        deeper = by not in layers.origins or layers.depth(_deepest(layers, by)) >= set_in.depth(path)
        if not deeper and (by[-len(below) :] != below or _value(layers, by) != _value(set_in, below)):
            deciding[name] = by
    if deciding:
        where = f" on{what} step{'s' * (len(deciding) > 1)} {', '.join(deciding)}"
        yield _line(layers, set_in, path, [*deciding.values()], where if what or len(deciding) < len(names) else "")


def _replaced_by_another(layers: Layered, recipe: Recipe) -> Iterator[str]:
    """A line for every key of a table that another key of the table replaces, in the same layer or a lower one."""
    tables: list[tuple[Key, Any]] = [(("training",), recipe.training), *placed_parts(recipe)]
    tables += [(("steps", name, "training"), step.training) for name, step in recipe.steps.items()]
    for place, config in tables:
        path = layers.written(place)
        for key, decides in config.without_effect().items():
            by = next((by for by in ((*path, decides), (*path[2:], decides)) if by in layers.origins), None)
            if by and (*path, key) in layers.origins and _rank(layers, (*path, key)) >= _rank(layers, by):
                yield _line(layers, layers, (*path, key), [by])


def _line(layers: Layered, set_in: Layered, path: Key, deciding: Sequence[Key], where: str = "") -> str:
    """The remark that these keys decide in place of a key."""
    by, value = deciding[0], json.dumps(_value(layers, deciding[0]), ensure_ascii=False, default=str)
    value = value if len(value) <= 60 else f"{value[:57]}..."
    inside, profile = _profile(set_in, path), _profile(layers, by)
    key = ".".join(("profiles", inside, *path) if inside else path)
    which = f"profile {profile}, " * bool(profile) + layers.place(by)
    more = f" (and {len(deciding) - 1} more)" * (len(deciding) > 1)
    name = "" if by == path else f"{'.'.join(by)} = "
    return f"{set_in.place(path)}: {key} has no effect{where}: {which}, sets {name}{value}{more}"


def _profile(layers: Layered, path: Key) -> str:
    """The profile that sets a key, or ""."""
    place = layers.place(path)
    return next((name for name in layers.chain if layers.origins.get(("profiles", name, *path)) == place), "")


def _rank(layers: Layered, path: Key) -> tuple[int, int]:
    """The layer that sets a key: how many recipes its file extends, and the number of its profile."""
    return layers.depth(path), ["", *layers.chain].index(_profile(layers, path))


def _deepest(layers: Layered, path: Key) -> Key:
    """A key, or the key inside its table that the last file sets: tables are merged key by key, but that of a step
    replaces the recipe's."""
    return max([path, *(key for key in layers.origins if key[: len(path)] == path)], key=layers.depth)


def _leaves(table: Mapping[str, Any], at: Key = ()) -> Iterator[Key]:
    for name, value in table.items():
        yield from _leaves(value, (*at, name)) if isinstance(value, dict) else [(*at, name)]


def _table(layers: Layered, name: str) -> Mapping[str, Any]:
    """A table of the recipe; empty if it is missing, or not a table."""
    table = layers.values.get(name)
    return table if isinstance(table, dict) else {}


def _value(layers: Layered, path: Key) -> Any:
    table: Any = layers.values
    for name in path:
        table = table.get(name) if isinstance(table, dict) else None
    return table


def _deciding_key(values: Mapping[str, Any], path: Key) -> Key:
    """The key whose value the merged recipe has in place of a key's: the key itself, the one that replaces it in
    [training], or the `type` of a table that has dropped it."""
    table: Any = values
    for size, name in enumerate(path):
        if not isinstance(table, dict):
            return path[:size]
        if path[size - 1 : size] == ("training",) and table.get(instead := OVERRIDDEN_BY.get(name, "")):
            return (*path[:size], instead)
        if name not in table:
            return (*path[:size], "type")
        table = table[name]
    return path
