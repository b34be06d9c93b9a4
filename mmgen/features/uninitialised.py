"""Networks whose weights are loaded right after they are built: no random initial values, no memory beyond theirs."""

from __future__ import annotations

from math import prod
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

from ..errors import RunError

RANDOM = (torch.ops.aten.normal_.default, torch.ops.aten.uniform_.default)
NEW = (torch.ops.aten.empty.memory_format, torch.ops.aten.zeros.default, torch.ops.aten.ones.default)
SPARE = 1 << 24  # numbers of buffers that are not saved
TIMES = 4  # the numbers of the weights: parts measure networks by building them


class Uninitialised(TorchDispatchMode):
    """Parameters that are built inside this context are not filled with random numbers, which takes longer than to read
    as many weights from a file. All of them must be loaded afterwards. Buffers get their values as usual.

    numbers  how many the file of the weights has: settings of strangers that claim far more raise RunError before
             memory is taken
    """

    def __init__(self, numbers: int | None = None) -> None:
        super().__init__()
        self.left = None if numbers is None else TIMES * numbers + SPARE

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in RANDOM and isinstance(args[0], nn.Parameter):
            return args[0]
        if self.left is not None and func in NEW and str((kwargs or {}).get("device")) != "meta":
            self.left -= prod(args[0])
            if self.left < 0:
                raise RunError(
                    "the settings describe a model that is far larger than its weights; copy the folder again"
                )
        return func(*args, **(kwargs or {}))


def is_loading() -> bool:
    """Whether a model is being built whose weights are loaded next, so that a part has none to fetch."""
    return isinstance(_get_current_dispatch_mode(), Uninitialised)
