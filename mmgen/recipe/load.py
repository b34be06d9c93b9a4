"""Read a recipe from TOML, from a saved run or with --set; resolve its merged tables to one checked `Recipe`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from ..configs import PartConfig
from ..errors import PluginError, RecipeError
from ..files import json_problem
from ..registry import Registry
from .check import _Check
from .layers import Layered, read, setting_table
from .tables import NAMED_PARTS, NO_DATA, PARTS, TABLES, NoData, Recipe
from .without_effect import keys_without_effect

Kind = TypeVar("Kind", bound=PartConfig)
FROM_START = ("inputs", "objectives", "data", "evaluate", "training")  # of a step that trains nothing


def load(
    path: Path, registry: Registry, profile: str | None = None, sets: tuple[str, ...] = ()
) -> tuple[Recipe, Layered]:
    """The checked recipe of a file, with its profile and settings applied, and where every value came from. Raises
    RecipeError with one line for each mistake, and a note for each key that has no effect."""
    layers, chosen = read(path, profile, sets)
    try:
        recipe = resolve(layers, registry, chosen, str(path))
    except RecipeError as error:
        for remark in keys_without_effect(layers):
            error.add_note(remark)
        raise
    layers.remarks = keys_without_effect(layers, recipe)
    return recipe, layers


def from_json(text: str, registry: Registry, source: str, base: Path = Path()) -> Recipe:
    """The recipe saved in a run folder. `source` names the file in errors; paths are relative to `base`."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecipeError(f"{source}: {json_problem(error)}") from None
    if not isinstance(values, dict):
        raise RecipeError(f"{source}: not a recipe: expected a JSON object")
    profile = values.pop("profile", None)
    return resolve(Layered(values, {}, base), registry, profile, source, stored=True)


def with_settings(recipe: Recipe, sets: Sequence[str], registry: Registry) -> Recipe:
    """The recipe of a run with settings overridden. Raises RecipeError."""
    values = recipe.model_dump(mode="json")
    profile = values.pop("profile")
    layers = Layered(values, {})
    for setting in sets:
        layers.lay(*setting_table(setting))
    return resolve(layers, registry, profile, "--set", stored=True)


def part_from(
    of: type[Kind],
    name: str,
    sets: tuple[str, ...],
    registry: Registry,
    front: str = "",
    values: Mapping[str, Any] = MappingProxyType({}),
    source: str = "",
) -> Kind:
    """The config of one part, without a recipe: by its kind (a config class), its name and `key=value` settings.
    `front`: the prefix of each setting on the command line. `values`: the table that the settings override. `source`:
    the place of errors, by default the option that names the part. Raises RecipeError."""
    layers = Layered({**values})
    for setting in sets:
        layers.lay(*setting_table(setting, front))
    source = source or f"--{'metric' if of.kind == 'metric' else 'type'} {name}"
    try:
        registry.get(of.kind, name)
    except PluginError as error:
        raise RecipeError(f"{source}: {error}") from None
    check = _Check(layers, registry, source)
    part = check.part(of.kind, {**layers.values, "type": name}, ())
    if part is None:
        raise RecipeError("\n".join(check.problems))
    assert isinstance(part, of)  # the registry admits only subclasses
    return part


def resolve(layers: Layered, registry: Registry, profile: str | None, source: str, stored: bool = False) -> Recipe:
    """The checked recipe of merged tables. `stored`: they come from a finished run or an export, whose data, which are
    none, are not compared with the steps."""
    check = _Check(layers, registry, source, stored)
    values = dict(layers.values)
    data = values.get("data") if stored else None
    no_data = None
    if isinstance(data, dict) and data.get("type") == NO_DATA:
        no_data = check.table(NoData, values.pop("data"), ("data",))
    built: dict[str, Any] = {"profile": profile}
    for table, kind in PARTS.items():
        if (part_table := values.pop(table, None)) is not None:
            built[table] = check.part(kind, part_table, (table,))
    for table, kind in NAMED_PARTS.items():
        named = check.tables(values.pop(table, {}), (table,))
        built[table] = named and {
            name: part if part is None else check.part(kind, part, (table, name)) for name, part in named.items()
        }
    built["inputs"] = built["inputs"] and {
        name: config and config.named(name) for name, config in built["inputs"].items()
    }
    for table, cls in TABLES.items():
        built[table] = check.table(cls, values.pop(table, {}), (table,))
    built["decoding"] = check.decoding(values.pop("decoding", {}), ("decoding",))
    steps = check.tables(values.pop("steps", {}), ("steps",))
    built["steps"] = steps and {
        name: step if step is None else check.step(_as_its_start(step, steps, built["inputs"]), built, ("steps", name))
        for name, step in steps.items()
    }
    recipe = check.top({**values, **({"data": no_data} if no_data else {}), **built})
    check.check_references(built)
    if check.problems:
        raise RecipeError("\n".join(sorted(check.problems, key=_place_of_problem)))
    assert recipe is not None  # it is None only with a problem
    return recipe


def _as_its_start(table: dict[str, Any], steps: Mapping[str, Any], inputs: Mapping[str, Any] | None) -> dict[str, Any]:
    """The table of a step; of one that trains nothing, with the keys of the step that it starts from."""
    if table.get("train") != []:
        return table
    start, passed = table, list[dict[str, Any]]()
    while start.get("train") == [] and start not in passed and isinstance(start.get("start"), str):
        passed.append(start)
        start = steps.get(start["start"]) or {}
        inherited = {key: start[key] for key in FROM_START if key in start}
        if isinstance(inherited.get("training"), dict) and isinstance(table.get("training"), dict):
            table = {**table, "training": inherited["training"] | table["training"]}
        table = inherited | table
    return {"inputs": [*(inputs or {})]} | table  # without a start, only `train` or `start` is the mistake


def _place_of_problem(problem: str) -> tuple[str, int]:
    """The file and line of a problem, by which problems are sorted."""
    file, _, rest = problem.partition(":")
    number = rest.partition(":")[0]
    return file, int(number) if number.isdigit() else 0
