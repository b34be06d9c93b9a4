"""A fake GPU: tensors stay on the CPU, but report the device `cuda`, and cannot be mixed with CPU tensors.

    with FakeGpu() as gpu:
        model.to("cuda")
        model(batch.to("cuda"))
    gpu.waits  # how often the CPU would have waited for the device: function -> number

It finds mistakes that only a GPU shows otherwise: tensors left on the CPU, and waits in a hot loop. What libraries
do below torch's own functions is not seen."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

CUDA, CPU = torch.device("cuda", 0), torch.device("cpu")
MARK = "_on_fake_gpu"
# what needs numbers, and so waits for the device; an index of booleans does too
READS_NUMBERS = {
    getattr(Tensor, name)
    for name in ("item", "tolist", "__bool__", "__int__", "__float__", "__index__", "nonzero", "cpu", "masked_select")
} | {torch.nonzero, torch.masked_select}
MAY_MIX = {
    torch._has_compatible_shallow_copy_type,
    Tensor.copy_,
    Tensor.__getitem__,
    Tensor.__setitem__,
    Tensor.to,
    Tensor.cpu,
    Tensor.data.__set__,
}


def lies_on_gpu(tensor: Tensor) -> bool:
    return getattr(tensor, MARK, False)


class MixedDevices(RuntimeError):
    """The error of torch for tensors on two devices."""


class FakeGpu(TorchFunctionMode):
    """A context in which `cuda` is a device."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: Counter[str] = Counter()

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = dict(kwargs or {})
        if func == Tensor.device.__get__:
            return CUDA if lies_on_gpu(args[0]) else func(*args)
        if func == Tensor.is_cuda.__get__:
            return lies_on_gpu(args[0])
        if func is Tensor.numpy and lies_on_gpu(args[0]):
            raise MixedDevices("can't convert cuda:0 device type tensor to numpy")
        target, args, kwargs = self._target(func, args, kwargs)
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        if func not in MAY_MIX:
            self._together(func, tensors)
        self._note(func, args)
        if func is torch.tensor and target is not None and torch.device(target).type == "cuda":
            self.waits["copy of numbers"] += 1
        result = func(*args, **kwargs)
        if target is None:
            on_gpu = any(map(lies_on_gpu, tensors[:1] if func in MAY_MIX else tensors))
        else:
            on_gpu = target.type == "cuda"
        if func == Tensor.data.__set__:
            setattr(args[0], MARK, lies_on_gpu(args[1]))
        return self._marked(result, on_gpu, tensors)

    def _target(self, func: Any, args: tuple, kwargs: dict) -> tuple[torch.device | None, tuple, dict]:
        """The device argument of a call, and the call without it."""
        target = kwargs.pop("device", None)
        if func in (Tensor.cuda, Tensor.cpu):
            return (CUDA if func is Tensor.cuda else CPU), args[:1], {}
        if func is Tensor.to and len(args) > 1:
            requested, rest = args[1], args[2:]
            if isinstance(requested, Tensor):
                target, args = requested.device, (args[0], requested.dtype, *rest)
            elif isinstance(requested, torch.device | str | int):
                dtype = (rest[0] if rest else None) or kwargs.pop("dtype", None) or args[0].dtype
                target, args = requested, (args[0], dtype, *rest[1:])
        elif func is Tensor.to and target is not None and not kwargs.get("dtype"):
            kwargs["dtype"] = args[0].dtype
        return (None if target is None else torch.device(target)), args, kwargs

    def _together(self, func: Any, tensors: list[Tensor]) -> None:
        """Raises MixedDevices for tensors on two devices. CPU tensors with a single number may be mixed with all."""
        counted = {lies_on_gpu(tensor) for tensor in tensors if tensor.dim() or lies_on_gpu(tensor)}
        if len(counted) > 1:
            raise MixedDevices(f"{getattr(func, '__name__', func)}: expected all tensors to be on the same device")

    def _note(self, func: Any, args: tuple) -> None:
        masked = func in (Tensor.__getitem__, Tensor.__setitem__) and any(
            isinstance(leaf, Tensor) and leaf.dtype == torch.bool and lies_on_gpu(leaf) for leaf in tree_leaves(args[1])
        )
        if masked or (func in READS_NUMBERS and args and isinstance(args[0], Tensor) and lies_on_gpu(args[0])):
            self.waits["index of booleans" if masked else func.__name__] += 1

    def _marked(self, result: Any, on_gpu: bool, tensors: list[Tensor]) -> Any:
        """Mark every tensor of a result with its device. A moved argument becomes a new tensor."""
        if isinstance(result, Tensor):
            if any(result is tensor for tensor in tensors):
                if lies_on_gpu(result) == on_gpu:
                    return result
                result = result.clone()
            setattr(result, MARK, on_gpu)
            return result
        if isinstance(result, tuple | list):
            for item in result:
                self._marked(item, on_gpu, tensors)
        return result
