"""Recipes: TOML in, checked parts and steps out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from ..configs import PartConfig
from ..errors import RecipeError
from ..registry import Registry
from .check import _Check, _line
from .layers import Layered, read, setting_table
from .tables import NAMED_PARTS, PARTS, TABLES, Recipe

Kind = TypeVar("Kind", bound=PartConfig)


def load(
    path: Path, registry: Registry, profile: str | None = None, sets: tuple[str, ...] = ()
) -> tuple[Recipe, Layered]:
    """A recipe file with its profile and settings laid over it, and where every value came from. Raises RecipeError
    with every mistake found, a line each."""
    layers, chosen = read(path, profile, sets)
    return resolve(layers, registry, chosen, str(path)), layers


def from_json(text: str, registry: Registry, source: str, base: Path = Path()) -> Recipe:
    """The recipe that a run folder keeps. `source` names the file in errors; paths count from `base`."""
    try:
        values = json.loads(text)
    except ValueError as error:
        raise RecipeError(f"{source}: not JSON: {error}") from None
    if not isinstance(values, dict):
        raise RecipeError(f"{source}: not a recipe")
    profile = values.pop("profile", None)
    return resolve(Layered(values, {}, base), registry, profile, source, stored=True)


def changed(recipe: Recipe, sets: Sequence[str], registry: Registry) -> Recipe:
    """A recipe with settings laid over it. Raises RecipeError."""
    values = recipe.model_dump(mode="json")
    profile = values.pop("profile")
    layers = Layered(values, {})
    for setting in sets:
        layers.lay(*setting_table(setting))
    return resolve(layers, registry, profile, "--set")


def part_from(of: type[Kind], name: str, sets: tuple[str, ...], registry: Registry, front: str = "") -> Kind:
    """One part of a kind (its config class) by its name and `key=value` settings, outside of any recipe. `front`: what
    stood before each setting on the command line. Raises RecipeError."""
    layers = Layered()
    for setting in sets:
        layers.lay(*setting_table(setting, front))
    check = _Check(layers, registry, f"--{'metric' if of.kind == 'metric' else 'type'} {name}")
    part = check.part(of.kind, {**layers.values, "type": name}, ())
    if part is None:  # its name is said already
        raise RecipeError("\n".join(problem.replace(f"{name}: type: no", f"{name}: no") for problem in check.problems))
    assert isinstance(part, of)  # the registry lets no other class in
    return part


def resolve(layers: Layered, registry: Registry, profile: str | None, source: str, stored: bool = False) -> Recipe:
    """Checked parts and steps from merged tables. `stored`: those of a finished run, see `renamed`."""
    check = _Check(layers, registry, source, stored)
    values = dict(layers.values)
    built: dict[str, Any] = {"profile": profile}
    for table, kind in PARTS.items():
        if table in values:
            built[table] = check.part(kind, values.pop(table), (table,))
    for table, kind in NAMED_PARTS.items():
        named = check.tables(values.pop(table, {}), (table,))
        built[table] = named and {
            name: part if part is None else check.part(kind, part, (table, name)) for name, part in named.items()
        }
    built["inputs"] = built["inputs"] and {
        name: config and config.named(name) for name, config in built["inputs"].items()
    }
    training = values.get("training", {})
    for table, cls in TABLES.items():
        built[table] = check.table(cls, values.pop(table, {}), (table,))
    steps = check.tables(values.pop("steps", {}), ("steps",))
    whole = training if built["training"] is not None else {}  # a mistake in there has been told, once is enough
    built["steps"] = steps and {
        name: step if step is None else check.step(step, whole, ("steps", name)) for name, step in steps.items()
    }
    recipe = check.top({**values, **built})
    check.fits(built)
    if check.problems:
        raise RecipeError("\n".join(sorted(check.problems, key=_line)))
    assert recipe is not None  # what makes it none is among the problems
    return recipe
