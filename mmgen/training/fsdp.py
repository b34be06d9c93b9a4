"""Sharded training: every process keeps a slice of every parameter, of its gradient and of its optimiser state (FSDP).

torch's `fully_shard` gathers a layer's parameters from all processes when it runs, forward and again backward, lets go
of them behind it, and adds the gradients up while the backward pass goes on. So all processes run the same number of
passes. Zhao et al. (2023), "PyTorch FSDP: experiences on scaling fully sharded data parallel", describe it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from ..errors import RunError
from ..model import Model
from ..recipe.tables import Training
from ..storage.weights import state
from ..tensors import Batch, Loss
from .precision import bf16

ON_CPUS = (2, 13)  # the oldest torch whose `fully_shard` has been seen to work there; that of 2.6 fails


def shards(training: Training, accelerator: Accelerator) -> bool:
    """Whether a step is sharded. One process has nobody to share with."""
    return training.shard and accelerator.num_processes > 1


def too_large(where: str) -> RunError:
    """What a process says that runs out of memory half-way through a pass."""
    return RunError(
        f"{where}: out of memory; with training.shard a batch is not cut on the way, since the other processes wait "
        "for every layer of it: "
        "lower training.micro_batch_size and begin with --fresh, or go on from the last checkpoint with more processes"
    )


class Sharded:
    """A model that is cut into slices, until `close` puts it together again. Its own parameters, whole, wait on the
    CPU.

    A layer of the backbone is gathered by itself; all else (word embeddings and the head that is tied to them,
    embedders) for the whole of a pass, since `Model` calls it from many places.

    parameters  the slices, by the names that the model has for them
    """

    def __init__(self, model: Model, accelerator: Accelerator, training: Training) -> None:
        self.model, self.accelerator = model.cpu(), accelerator
        self._state, self._places = state(model), places(model)
        self._whole = dict(model.named_parameters())
        self._check()
        self._mesh = init_device_mesh(accelerator.device.type, (accelerator.num_processes,))
        half = bf16(
            training.precision, accelerator.device
        )  # gathered like that, it takes half the room; gradients are added up whole
        policy = (
            MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32, cast_forward_inputs=False)
            if half
            else MixedPrecisionPolicy()
        )
        terms: dict[str, Any] = {"mesh": self._mesh, "mp_policy": policy, "reshard_after_forward": True}
        # `fully_shard` cannot be undone, so it gets modules and parameters of its own around ours (sharing their
        # numbers)
        self._put({name: nn.Parameter(p.data, requires_grad=p.requires_grad) for name, p in self._whole.items()})
        self._layers = list(layers(model.backbone))
        own = {layer: _Layer(_cut(_Layer(layer), terms)) for _, _, layer in self._layers if self._is_apart(layer)}
        for siblings, number, layer in self._layers:
            siblings[number] = own.get(layer, layer)
        self._root: nn.Module | None = _cut(_Root(model), terms)
        self.parameters = {name: getattr(*found[0]) for name, found in self._places.items()}

    def loss(self, batch: Batch) -> Loss:
        """The model's loss. Every process has to ask for as many, and to go as often backward."""
        assert self._root is not None  # until `close`
        return Loss(*self._root(batch))

    def state(self) -> dict[str, Tensor]:
        """Parameters (slices) and buffers by name, as `checkpoint.state` has them of the whole model."""
        return {name: self.parameters.get(name, tensor) for name, tensor in self._state.items()}

    def gather(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Slices as whole tensors, on the CPU and in the first process alone; all processes take part."""
        whole = {}
        for name, tensor in tensors.items():
            full = (
                tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
            )  # one at a time: they need not fit together
            if self.accelerator.is_main_process:
                whole[name] = full.detach().cpu()
        return whole

    def cut(self, tensor: Tensor, name: str) -> Tensor:
        """Optimiser state of the parameter `name`, the first process's, as this process keeps it."""
        parameter = self.parameters[name]
        if tensor.shape != parameter.shape:
            return tensor.to(self.accelerator.device)  # a count of steps
        return distribute_tensor(tensor.to(self.accelerator.device), self._mesh, parameter.placements)

    @torch.no_grad()
    def close(self) -> None:
        """The model as it was, plain and on the CPU, with what it has learnt; in all processes."""
        for name, parameter in self._whole.items():
            parameter.copy_(self.parameters[name].full_tensor())
        for siblings, number, layer in self._layers:
            siblings[number] = layer
        self._put(self._whole)
        self.parameters, self._root = {}, None
        self.model.cpu()

    def _check(self) -> None:
        """Raises RunError for what `fully_shard` cannot do."""
        for name, parameter in self._whole.items():
            if parameter.ndim == 0:
                raise RunError(
                    f"training.shard: the parameter '{name}' is a single number, which cannot be cut; make it a vector "
                    "of one, or learn without training.shard"
                )
        if (
            self.accelerator.device.type == "cpu"
            and tuple(int(part) for part in torch.__version__.split(".")[:2]) < ON_CPUS
        ):
            raise RunError(
                f"training.shard on CPUs needs torch {'.'.join(map(str, ON_CPUS))} or newer, and this is "
                f"{torch.__version__}; update it, or learn without training.shard"
            )

    def _put(self, parameters: Mapping[str, nn.Parameter]) -> None:
        for name, parameter in parameters.items():
            for owner, attribute in self._places[name]:
                setattr(owner, attribute, parameter)

    def _is_apart(self, layer: nn.Module) -> bool:
        """Whether a layer has parameters, and shares none with what lies outside of it."""
        inside = set(layer.modules())
        owners = [{owner for owner, _ in found} for found in self._places.values()]
        own = [each for each in owners if each & inside]
        return bool(own) and all(each <= inside for each in own)


def _cut(module: nn.Module, terms: Mapping[str, Any]) -> nn.Module:
    """The same module, cut: `fully_shard` adds a class to its own, and its type tells of that class alone."""
    fully_shard(module, **terms)
    return module


class _Root(nn.Module):
    """A model as `fully_shard` wants it: it finds tensors to hang its backward pass on in tuples, not in a `Loss`."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Batch) -> tuple[Any, ...]:
        loss = self.model(batch)
        return loss.sums, loss.slots, loss.counts, loss.weights


class _Layer(nn.Module):
    """A layer, called as it is. Once for `fully_shard`, and around that once more: SqueezeBERT asks its layers'
    `forward` directly, and so would pass by the hooks that gather them."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, *values: Any, **named: Any) -> Any:
        return self.layer(*values, **named)


def layers(module: nn.Module) -> Iterator[tuple[nn.ModuleList, int, nn.Module]]:
    """The items of a module's outermost `nn.ModuleList`s: which list, where in it, and the item. They are called as
    modules."""
    for child in module.children():
        if isinstance(child, nn.ModuleList) and not any(
            isinstance(item, nn.ModuleList | nn.ModuleDict) for item in child
        ):
            yield from ((child, number, item) for number, item in enumerate(child))
        else:
            yield from layers(child)


def places(model: nn.Module) -> dict[str, list[tuple[nn.Module, str]]]:
    """Where each parameter is kept: (module, attribute), several for a tied one."""
    found: dict[nn.Parameter, list[tuple[nn.Module, str]]] = {}
    for owner in model.modules():
        for attribute, parameter in owner.named_parameters(recurse=False, remove_duplicate=False):
            found.setdefault(parameter, []).append((owner, attribute))
    return {name: found[parameter] for name, parameter in model.named_parameters()}
