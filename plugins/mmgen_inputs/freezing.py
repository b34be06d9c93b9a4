"""Which layers of a timm network train (from a level on, without norms), and which activations are recomputed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from torch import nn

from mmgen.errors import DataError

NUMBERED = re.compile(r"_(\d+)")  # timm's wrappers write "layers_0" for "layers.0"


def freeze(network: nn.Module, name: str, frozen_level: int | str | None, train_norms: bool) -> None:
    """Make the layers behind `frozen_level` trainable (None: all layers), up to the level that the network returns, and
    freeze all others. Norms stay frozen unless `train_norms`.

    network  a timm network that returns one feature map
    name     its name, for errors

    Raises DataError for a level that does not exist."""
    network.requires_grad_(False)
    if frozen_level == "all":
        return
    info: Any = network.feature_info
    names = [level["module"] for level in info.info]
    first = -1
    if isinstance(frozen_level, int):
        if not -len(names) <= frozen_level < len(names):
            raise DataError(
                f"frozen_level is {frozen_level}, but '{name}' has {len(names)} levels of feature maps, 0 to "
                f"{len(names) - 1}"
            )
        level = range(len(names))[frozen_level]
        if level >= info.out_indices[-1]:
            return
        first = _end_of_level(network, names[level])
    last = _end_of_level(network, names[info.out_indices[-1]])
    for place, module in enumerate(network.modules()):
        if first < place <= last and (train_norms or "Norm" not in type(module).__name__):
            for parameter in module.parameters(recurse=False):
                parameter.requires_grad_(True)


def _end_of_level(network: nn.Module, level: str) -> int:
    """The place of the last module of a level among the network's modules, in the order of the forward pass."""
    modules = [NUMBERED.sub(r".\1", name).removeprefix("model.") for name, _ in network.named_modules()]
    return max(place for place, name in enumerate(modules) if name == level or name.startswith(f"{level}."))


def recompute(network: nn.Module, name: str) -> None:
    """Let a timm network recompute its activations in the backward pass. Raises DataError if it cannot."""
    inner: Any = getattr(network, "model", network)
    modules: Iterator[Any] = network.modules()
    for module in modules:
        if hasattr(module, "inplace"):  # would change the input that is kept to recompute from
            module.inplace = False
    try:
        inner.set_grad_checkpointing(True)
    except (AttributeError, AssertionError):
        raise DataError(
            f"gradient_checkpointing: timm's '{name}' cannot recompute its layers; remove the key"
        ) from None
