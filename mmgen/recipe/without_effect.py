"""Keys of a recipe without effect: a recipe that it extends sets another value, in a profile or for steps, or another
key of the part decides. The order of layers stays; `mmgen check` and `mmgen run` name such keys."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .layers import Layered
from .tables import Recipe, placed_parts
from .toml_lines import Key
from .training import INSTEAD_OF


@dataclass(frozen=True)
class _Setting:
    """A value that a layer sets. `depth`: how many recipes its file extends; --set is deepest. `layer`: its number."""

    path: Key
    value: Any
    place: str
    depth: int
    layer: int
    profile: str | None

    def line(self, winners: list[_Setting], where: str = "") -> str:
        """The remark that these settings decide in place of this one."""
        path = self.path if self.profile is None else ("profiles", self.profile, *self.path)
        first = winners[0]
        profile = f"profile {first.profile}, " if first.profile is not None else ""
        key = "" if first.path == self.path else f"{'.'.join(first.path)} = "
        more = f" (and {len(winners) - 1} more)" * (len(winners) > 1)
        value = json.dumps(first.value, ensure_ascii=False, default=str)
        value = value if len(value) <= 60 else f"{value[:57]}..."
        return f"{self.place}: {'.'.join(path)} has no effect{where}: {profile}{first.place}, sets {key}{value}{more}"


def keys_without_effect(recipe: Recipe, layers: Layered) -> list[str]:
    """A line for every key that is set without effect. A key that its own file overrides, in a profile or for a step,
    is a default, and gives no line; nor does one of a recipe that this one extends."""
    settings = [*_settings(layers)]
    lines = []
    for setting in _deepest(settings).values():
        decides = _last(settings, layers, _deciding_key(layers.values, setting.path))
        if decides is not None and decides.depth < setting.depth:
            if decides.path != setting.path or decides.value != setting.value:
                lines.append(setting.line([decides]))
        elif decides is setting and setting.path[0] == "training":
            lines += _overridden_for_steps(setting, settings, layers)
    for path, part in placed_parts(recipe):
        for key, by in part.without_effect().items():
            set_, decides = (_last(settings, layers, (*path, name)) for name in (key, by))
            # a size below `weights` is that of an encoder without them
            if set_ and decides and (set_.depth, set_.layer) >= (decides.depth, decides.layer):
                lines.append(set_.line([decides]))
    return lines


def _settings(layers: Layered) -> Iterator[_Setting]:
    """What the layers set, in their order."""
    depths: dict[str, int] = {}
    for layer in layers.layers:
        if layer.profile is None:  # the order of the files; each --set comes after them
            files = {_file(place) for place in layer.origins.values() if place}
            depths |= dict.fromkeys(files - {*depths}, len(depths))
    for number, layer in enumerate(layers.layers):
        places = Layered(origins=layer.origins)
        for path, value in _leaves(layer.values):
            if path[0] not in ("profile", "profiles"):
                place = places.place(path)
                yield _Setting(path, value, place, depths.get(_file(place), 0), number, layer.profile)


def _file(place: str) -> str:
    return place if place.startswith("--set ") else place.rpartition(":")[0]


def _leaves(table: Mapping[str, Any], at: Key = ()) -> Iterator[tuple[Key, Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*at, name))
        else:
            yield (*at, name), value


def _deepest(settings: list[_Setting]) -> dict[Key, _Setting]:
    """Path -> the last setting of the deepest file that sets it."""
    deepest: dict[Key, _Setting] = {}
    for setting in settings:
        if setting.path not in deepest or setting.depth >= deepest[setting.path].depth:
            deepest[setting.path] = setting
    return deepest


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


def _last(settings: list[_Setting], layers: Layered, path: Key) -> _Setting | None:
    """The setting of this key whose value the merged recipe has."""
    same = (setting for setting in reversed(settings) if setting.path == path)
    return (
        next((setting for setting in same if setting.place == layers.place(path)), None)
        if path in layers.origins
        else None
    )


def _overridden_for_steps(setting: _Setting, settings: list[_Setting], layers: Layered) -> list[str]:
    """The remark on a key of [training] that recipes which this one extends override for steps."""
    key = setting.path[-1]
    names = (key, INSTEAD_OF.get(key, key))
    steps = layers.values.get("steps", {})
    overrides = {
        step: decides
        for step in steps
        for name in names
        if (decides := _last(settings, layers, ("steps", step, "training", name)))
        if decides.depth < setting.depth and (name != key or decides.value != setting.value)
    }
    if not overrides:
        return []
    some = f" on step{'s' * (len(overrides) > 1)} {', '.join(overrides)}" * (len(overrides) < len(steps))
    return [setting.line([*overrides.values()], some)]
