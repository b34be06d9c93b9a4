"""Read a recipe from TOML, from a saved run or with --set; or the config of single parts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import ValidationError

from ..configs import PartConfig
from ..errors import PluginError, RecipeError, did_you_mean
from ..files import json_problem
from ..registry import Registry, installed, load_files
from .layers import Layered, read, setting_table, settings_of
from .parse import Parts, parse, plugin_files, problem_lines
from .tables import Recipe
from .without_effect import keys_without_effect

Kind = TypeVar("Kind", bound=PartConfig)


def load(
    path: Path, registry: Registry, profile: str | None = None, sets: tuple[str, ...] = (), plugins: bool = False
) -> tuple[Recipe, Layered]:
    """The checked recipe of a file, with its profile and settings applied, and where every value came from. Raises
    RecipeError with one line for each mistake, and a note for each key that has no effect. `plugins`: execute the files
    that the recipe names as plugins."""
    layers, chosen = read(path, profile, sets)
    if plugins and (files := plugin_files(layers)):
        load_files(files)
        registry = installed()
    try:
        recipe = parse(layers, registry, chosen, str(path))
    except RecipeError as error:
        for remark in keys_without_effect(layers):
            error.add_note(remark)
        raise
    layers.remarks = keys_without_effect(layers, recipe)
    if used := registry.files(recipe.parts()):
        named = {file.name: file for file in recipe.plugins} | used
        recipe = recipe.model_copy(update={"plugins": tuple(named.values())})
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
    return parse(Layered(values, base=base), registry, profile, source, stored=True)


def with_settings(recipe: Recipe, sets: Sequence[str], registry: Registry) -> Recipe:
    """The recipe of a run with settings overridden. Raises RecipeError."""
    values = recipe.model_dump(mode="json")
    profile = values.pop("profile")
    layers = Layered(values)
    for setting in sets:
        layers.lay(*setting_table(setting))
    return parse(layers, registry, profile, "--set", stored=True)


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
    layers, parts = Layered({**values}), Parts(registry)
    for setting in sets:
        layers.lay(*setting_table(setting, front))
    table, source = {**layers.values, "type": name}, source or f"--{'metric' if of.kind == 'metric' else 'type'} {name}"
    try:
        registry.get(of.kind, name)
        part = parts.part(of, table)
    except PluginError as error:
        raise RecipeError(f"{source}: {error}") from None
    except ValidationError as error:
        mistakes = parts.mistakes(parts.class_of(of, table), table, error)
        raise RecipeError("\n".join(problem_lines(mistakes, layers, source))) from None
    assert isinstance(part, of)  # the registry admits only subclasses
    return part


def select_parts(
    of: type[Kind], from_recipe: Mapping[str, Kind], names: Sequence[str], sets: Sequence[str], registry: Registry
) -> dict[str, Kind]:
    """The recipe's parts of a kind, or those in `names`: parts of the recipe, else installed parts with their defaults.
    `sets`: their settings, such as "attention.layer=1". Raises RecipeError."""
    kind, known = of.kind, list(dict.fromkeys([*from_recipe, *registry.by_name(of.kind)]))
    requested = list(dict.fromkeys(names)) or list(from_recipe)
    if not requested:
        choices = ", ".join(known) or "(none installed)"
        raise RecipeError(f"the recipe has no [{kind}s]; choose with --{kind}: {choices}")
    configs = {}
    for name, settings in settings_of(sets, requested, kind).items():
        if name not in known:
            hint = f"{did_you_mean(name, known)}; choose from: {', '.join(known)}"
            raise RecipeError(f"--{kind} {name}: unknown {kind}{hint}")
        config = from_recipe.get(name)
        table = {} if config is None else config.model_dump(mode="json")
        configs[name] = part_from(
            of, name if config is None else config.type, settings, registry, f"{name}.", table, f"--{kind} {name}"
        )
    return configs
