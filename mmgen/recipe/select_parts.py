"""Select metrics or probes on the command line: those of the recipe, or installed ones, with changed settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from pydantic import ValidationError

from ..configs import PartConfig
from ..errors import RecipeError
from ..registry import Registry, did_you_mean
from .layers import settings_of
from .load import part_from
from .messages import describe_mistake

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
        configs[name] = (
            _override_settings(of, name, from_recipe[name], settings, registry)
            if name in from_recipe
            else part_from(of, name, settings, registry, f"{name}.")
        )
    return configs


def _override_settings(of: type[Kind], name: str, config: Kind, settings: Sequence[str], registry: Registry) -> Kind:
    """The recipe's part of this name, with some settings overridden."""
    required = {key: getattr(config, key) for key, info in type(config).model_fields.items() if info.is_required()}
    laid = part_from(of, config.type, tuple(settings), registry, f"{name}.", required)
    try:
        return type(config).model_validate({**config.model_dump(), **laid.model_dump(include=laid.model_fields_set)})
    except ValidationError as error:
        key, text = describe_mistake(type(config), error.errors()[0])
        raise RecipeError(": ".join([f"--set {name}", *key, text])) from None
