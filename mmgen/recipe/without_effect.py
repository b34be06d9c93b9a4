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


def keys_without_effect(recipe: Recipe, layers: Layered) -> list[str]:
    """A line for every key that is set without effect. A key that its own file overrides, in a profile or for a step,
    is a default, and gives no line; nor does one of a recipe that this one extends."""
    lines = []
    defaults = replace(layers.defaults or Layered(), files=layers.files)
    for path, value in _leaves(defaults.values):
        by = _deciding_key(layers.values, path)
        if layers.depth(by) < defaults.depth(path) and (by != path or _value(layers, by) != value):
            lines.append(_line(defaults, path, layers, [by]))
    steps = layers.values.get("steps", {})
    for key, value in layers.values.get("training", {}).items():
        path, deciding = ("training", key), dict[str, Key]()
        for step in steps:
            by = _deciding_key(layers.values, ("steps", step, "training", key))
            if (
                by[-1] != "type"
                and layers.depth(by) < layers.depth(path)
                and (by[-1] != key or _value(layers, by) != value)
            ):
                deciding[step] = by
        if deciding:
            some = f" on step{'s' * (len(deciding) > 1)} {', '.join(deciding)}" * (len(deciding) < len(steps))
            lines.append(_line(layers, path, layers, [*deciding.values()], some))
    for path, part in placed_parts(recipe):
        for key, decides in part.without_effect().items():
            size, by = (*path, key), (*path, decides)  # a size below `weights` is that of an encoder without them
            if size in layers.origins and by in layers.origins and _rank(layers, size) >= _rank(layers, by):
                lines.append(_line(layers, size, layers, [by]))
    return lines


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
