"""Checks that a module keeps everything on one device, with torch's meta device, which needs no GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

# functions that accept a CPU tensor beside GPU tensors
ALLOWED = {"to", "type_as", "expand_as", "view_as", "reshape_as", "copy_", "__getitem__", "__setitem__"}


class MixedDevices(Exception):
    """A function got tensors of two devices."""


class OneDevice(TorchFunctionMode):
    """Raises MixedDevices where a GPU would fail. Some functions of the meta device take tensors of both devices."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        devices = {tensor.device.type for tensor in _tensors_in((args, kwargs or {})) if tensor.ndim}
        if len(devices) > 1 and name not in ALLOWED:
            raise MixedDevices(name)
        return func(*args, **(kwargs or {}))


def plain_tensors(module: nn.Module) -> list[str]:
    """Tensors kept as plain attributes, which do not move with the module."""
    return [
        f"{prefix}.{name}".lstrip(".")
        for prefix, inner in module.named_modules()
        for name, value in vars(inner).items()
        if isinstance(value, Tensor)
    ]


def _tensors_in(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _tensors_in(inner)
    elif isinstance(value, tuple | list):
        for inner in value:
            yield from _tensors_in(inner)
