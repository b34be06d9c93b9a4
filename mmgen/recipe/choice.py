"""Choice: which of a recipe's metrics or probes are meant on the command line, or installed ones, with settings of
their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from pydantic import ValidationError

from ..configs import PartConfig
from ..errors import RecipeError
from ..registry import Registry, did_you_mean
from .layers import settings_of
from .load import part_from
from .messages import mistaken

Kind = TypeVar("Kind", bound=PartConfig)


def chosen(
    of: type[Kind], own: Mapping[str, Kind], names: Sequence[str], sets: Sequence[str], registry: Registry
) -> dict[str, Kind]:
    """The recipe's own parts of a kind, or those named: of the recipe, or else of those installed, with their
    defaults. `sets`: their settings, such as "attention.layer=1". Raises RecipeError."""
    kind, kinds = of.kind, [part.name for part in registry.of_kind(of.kind)]
    wanted = list(dict.fromkeys(names)) or list(own)
    if not wanted:
        raise RecipeError(
            f"the recipe has no [{kind}s]; choose with --{kind}: {', '.join(kinds) or 'none is installed'}"
        )
    found = {}
    for name, settings in settings_of(sets, wanted, kind).items():
        known = [*own, *(each for each in kinds if each not in own)]
        if name not in known:
            raise RecipeError(
                f"--{kind} {name}: no {kind} is called that{did_you_mean(name, known)}; there are: {', '.join(known)}"
            )
        found[name] = (
            _changed(of, name, own[name], settings, registry)
            if name in own
            else part_from(of, name, settings, registry, f"{name}.")
        )
    return found


def _changed(of: type[Kind], name: str, config: Kind, settings: Sequence[str], registry: Registry) -> Kind:
    """The recipe's part of this name with settings of its own laid over it."""
    laid = part_from(of, config.type, tuple(settings), registry, f"{name}.")
    try:
        return type(config).model_validate({**config.model_dump(), **laid.model_dump(include=laid.model_fields_set)})
    except ValidationError as error:
        key, text = mistaken(type(config), error.errors()[0])
        raise RecipeError(": ".join([f"--set {name}", *key, text])) from None
