"""Keys of a recipe without effect: a recipe that it extends sets another value, in a profile or for steps, or another
key of the part decides. The order of layers stays; `mmgen check` and `mmgen run` name such keys."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from .layers import Layered
from .tables import Recipe, placed_parts
from .toml_lines import Key
from .training import INSTEAD_OF

NOT_FOR_TRAINING = ("validation_split", "test_split")  # keys of [data] that the data of a step do not replace


def keys_without_effect(layers: Layered, recipe: Recipe | None = None) -> list[str]:
    """A line for every key that is set without effect. A key that its own file overrides, in a profile or for a step,
    is a default, and gives no line; nor does one of a recipe that this one extends. `recipe`: the checked recipe;
    without it, as for tables with mistakes, keys that another key of their part replaces give no line."""
    lines = []
    defaults = replace(layers.defaults or Layered(), files=layers.files)
    for path, value in _leaves(defaults.values):
        by = _deciding_key(layers.values, path)
        if layers.depth(by) < defaults.depth(path) and (by != path or _value(layers, by) != value):
            lines.append(_line(defaults, path, layers, [by]))
    for table in ("training", "decoding"):
        lines += _overridden_by_steps(layers, table)
    lines += _data_without_effect(layers)
    for path, part in placed_parts(recipe):  # none without a recipe
        for key, decides in part.without_effect().items():
            size, by = (*path, key), (*path, decides)  # a size below `weights` is that of an encoder without them
            if size in layers.origins and by in layers.origins and _rank(layers, size) >= _rank(layers, by):
                lines.append(_line(layers, size, layers, [by]))
    return lines


def _overridden_by_steps(layers: Layered, table: str) -> Iterator[str]:
    """A line for every key of a table, [training] or [decoding], that steps of an extended recipe override."""
    steps = _table(layers, "steps")
    for key, value in _table(layers, table).items():
        path, deciding = _deepest(layers, (table, key)), dict[str, Key]()
        for step in steps:
            by = _deciding_key(layers.values, ("steps", step, table, key))
            if (
                by[-1] != "type"
                and layers.depth(_deepest(layers, by)) < layers.depth(path)
                and (by[-1] != key or _value(layers, by) != value)
            ):
                deciding[step] = by
        if deciding:
            where = f" on {_names_of(deciding)}" * (len(deciding) < len(steps))
            yield _line(layers, path, layers, [*deciding.values()], where)


def _data_without_effect(layers: Layered) -> Iterator[str]:
    """A line for [data] if steps of an extended recipe train on their own data."""
    data = _table(layers, "data")
    keys = [path for path in layers.origins if path[0] == "data" and path[1:2] and path[1] not in NOT_FOR_TRAINING]
    if not keys:
        return
    path = max(keys, key=layers.depth)
    deciding = {}
    for step in _table(layers, "steps"):
        by = ("steps", step, "data")
        inside = [key for key in layers.origins if key[:3] == by]
        if inside and max(map(layers.depth, inside)) < layers.depth(path) and _value(layers, by) != data:
            deciding[step] = by
    if deciding:
        where = f" on the training of {_names_of(deciding)}"
        yield _line(layers, path, layers, [*deciding.values()], where)


def _table(layers: Layered, name: str) -> Mapping[str, Any]:
    """A table of the recipe; empty if it is missing, or not a table."""
    table = layers.values.get(name)
    return table if isinstance(table, dict) else {}


def _deepest(layers: Layered, path: Key) -> Key:
    """A key, or the key inside its table that the last file sets: tables are merged key by key, but that of a step
    replaces the recipe's."""
    return max([path, *(key for key in layers.origins if key[: len(path)] == path)], key=layers.depth)


def _names_of(steps: Mapping[str, Key]) -> str:
    return f"step{'s' * (len(steps) > 1)} {', '.join(steps)}"


def _line(set_in: Layered, path: Key, layers: Layered, deciding: list[Key], where: str = "") -> str:
    """The remark that these keys decide in place of a key."""
    by, value = deciding[0], json.dumps(_value(layers, deciding[0]), ensure_ascii=False, default=str)
    value = value if len(value) <= 60 else f"{value[:57]}..."
    inside, profile = _profile(set_in, path), _profile(layers, by)
    key = ".".join(("profiles", inside, *path) if inside else path)
    what = f"{set_in.place(path)}: {key} has no effect{where}"
    which = f"profile {profile}, " * bool(profile) + layers.place(by)
    more = f" (and {len(deciding) - 1} more)" * (len(deciding) > 1)
    return f"{what}: {which}, sets {'.'.join(by) + ' = ' if by != path else ''}{value}{more}"


def _profile(layers: Layered, path: Key) -> str:
    """The profile that sets a key, or ""."""
    return next(
        (name for name in layers.chain if layers.origins.get(("profiles", name, *path)) == layers.place(path)), ""
    )


def _rank(layers: Layered, path: Key) -> tuple[int, int]:
    """The layer that sets a key: how many recipes its file extends, and the number of its profile."""
    return layers.depth(path), ["", *layers.chain].index(_profile(layers, path))


def _leaves(table: Mapping[str, Any], at: Key = ()) -> Iterator[tuple[Key, Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*at, name))
        else:
            yield (*at, name), value


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
        if name not in table:
            if (instead := INSTEAD_OF.get(name)) in table and path[size - 1 : size] == ("training",):
                return (*path[:size], str(instead))
            return (*path[:size], "type")
        table = table[name]
    return path
