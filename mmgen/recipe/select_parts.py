"""Select metrics or probes on the command line: those of the recipe, or installed ones, with changed settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from ..configs import PartConfig
from ..errors import RecipeError
from ..registry import Registry, did_you_mean
from .layers import settings_of
from .load import part_from

Kind = TypeVar("Kind", bound=PartConfig)


def select_parts(
    of: type[Kind], from_recipe: Mapping[str, Kind], names: Sequence[str], sets: Sequence[str], registry: Registry
) -> dict[str, Kind]:
    """The recipe's parts of a kind, or those in `names`: parts of the recipe, else installed parts with their defaults.
    `sets`: their settings, such as "attention.layer=1". Raises RecipeError."""
    kind, kinds = of.kind, [*registry.by_name(of.kind)]
    requested = list(dict.fromkeys(names)) or list(from_recipe)
    if not requested:
        raise RecipeError(
            f"the recipe has no [{kind}s]; choose with --{kind}: {', '.join(kinds) or '(none installed)'}"
        )
    configs = {}
    for name, settings in settings_of(sets, requested, kind).items():
        known = [*from_recipe, *(installed for installed in kinds if installed not in from_recipe)]
        if name not in known:
            raise RecipeError(
                f"--{kind} {name}: unknown {kind}{did_you_mean(name, known)}; choose from: {', '.join(known)}"
            )
        config = from_recipe.get(name)
        table = {} if config is None else config.model_dump(mode="json")
        type_, source = name if config is None else config.type, f"--{kind} {name}"
        configs[name] = part_from(of, type_, settings, registry, f"{name}.", table, source)
    return configs
