"""Read a recipe from TOML, from a saved run or with --set; or the config of single parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from ..configs import PartConfig
from ..errors import PluginError, RecipeError
from ..registry import Registry, installed, load_files
from .layers import Layered, read, setting_table
from .parse import Parts, mistakes_in, parse, plugin_files
from .tables import Recipe, parts_in

Kind = TypeVar("Kind", bound=PartConfig)


def load(
    path: Path, registry: Registry, profile: str | None = None, sets: tuple[str, ...] = (), plugins: bool = False
) -> tuple[Recipe, Layered]:
    """The checked recipe of a file, with its profile and settings applied, and where every value came from. Raises
    RecipeError with one line for each mistake. `plugins`: execute the files that the recipe names as plugins."""
    layers = read(path, profile, sets)
    if plugins and (files := plugin_files(layers)):
        try:
            load_files(files)
        except PluginError as error:
            raise RecipeError(f"{layers.opening(('plugins',))}{error}") from None
        registry = installed()
    recipe = parse(layers, registry, str(path))
    named = {file.name: file for file in recipe.plugins} | registry.files(parts_in(recipe))
    return recipe.model_copy(update={"plugins": tuple(named.values())}), layers


def from_values(values: Mapping[str, Any], registry: Registry, source: str, base: Path = Path()) -> Recipe:
    """The recipe saved in a run folder. `source` names the file in errors; paths are relative to `base`."""
    return parse(Layered({**values}, base=base), registry, source, stored=True)


def with_settings(recipe: Recipe, sets: Sequence[str], registry: Registry) -> Recipe:
    """The recipe of a run with settings overridden. Raises RecipeError."""
    layers = Layered(recipe.model_dump(mode="json"))
    for setting in sets:
        layers.lay(*setting_table(setting))
    return parse(layers, registry, "--set", stored=True)


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
    with mistakes_in(layers, source):
        part = Parts(registry, {}).part(of, {**layers.values, "type": name})
    assert isinstance(part, of)  # the registry admits only subclasses
    return part


def select_parts(
    of: type[Kind], from_recipe: Mapping[str, Kind], names: Sequence[str], sets: Sequence[str], registry: Registry
) -> dict[str, Kind]:
    """The recipe's parts of a kind, or those in `names`: parts of the recipe, else installed parts with their defaults.
    `sets`: their settings, such as "attention.layer=1". Raises RecipeError."""
    kind = of.kind
    settings: dict[str, tuple[str, ...]] = dict.fromkeys(names or from_recipe, ())
    if not settings:
        choices = ", ".join(registry.by_name(kind))
        raise RecipeError(f"the recipe has no [{kind}s]; choose with --{kind}: {choices}")
    for setting in sets:
        name, _, rest = setting.partition(".")
        if name not in settings or not rest:
            choices = ", ".join(settings)
            raise RecipeError(f"--set {setting}: write {kind.upper()}.KEY=VALUE; the {kind}s are: {choices}")
        settings[name] += (rest,)
    configs = {}
    for name, own in settings.items():
        table = from_recipe[name].model_dump(mode="json") if name in from_recipe else {"type": name}
        configs[name] = part_from(of, table["type"], own, registry, f"{name}.", table, f"--{kind} {name}")
    return configs
