"""Networks whose weights are loaded right after they are built: without random initial values, or without memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

RANDOM = (torch.ops.aten.normal_.default, torch.ops.aten.uniform_.default)


class Uninitialised(TorchDispatchMode):
    """Parameters that are built inside this context are not filled with random numbers, which takes longer than to read
    as many weights from a file. All of them must be loaded afterwards. Buffers get their values as usual."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in RANDOM and isinstance(args[0], nn.Parameter):
            return args[0]
        return func(*args, **(kwargs or {}))


def building_device() -> torch.device:
    """The device on which modules are built here. torch.get_default_device of torch 2.6 ignores `with
    torch.device(...)`."""
    return torch.empty(0).device
