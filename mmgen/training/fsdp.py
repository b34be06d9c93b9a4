"""Sharded training: every process keeps a slice of every parameter, of its gradient and of its optimiser state (FSDP).

torch's `fully_shard` gathers a layer's parameters from all processes for the forward and again for the backward pass of
the layer, frees them afterwards, and sums the gradients during the backward pass. So all processes must run the same
number of passes. See Zhao et al. (2023), "PyTorch FSDP: experiences on scaling fully sharded data parallel".
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

ON_CPUS = (2, 13)  # the oldest torch whose `fully_shard` was tested on CPUs; 2.6 fails


def shards(training: Training, accelerator: Accelerator) -> bool:
    """Whether a step is sharded: only with several processes."""
    return training.shard and accelerator.num_processes > 1


def too_large(where: str) -> RunError:
    """The error of a process that runs out of memory in the middle of a pass."""
    return RunError(
        f"{where}: out of memory; with training.shard a batch cannot be split, since the other processes wait for each "
        "layer; "
        "lower training.micro_batch_size and start over with --fresh, or resume the last checkpoint with more processes"
    )


class Sharded:
    """A sharded model, until `close` restores the plain model. Its full parameters stay on the CPU.

    Each layer of the backbone is gathered separately; everything else (word embeddings and the head that is tied to
    them, embedders) is gathered for a full pass, since `Model` calls it from many places.

    parameters  the slices, by the model's names
    """

    def __init__(self, model: Model, accelerator: Accelerator, training: Training) -> None:
        self.model, self.accelerator = model.cpu(), accelerator
        model.check_gradients = False
        self._state, self._places = state(model), places(model)
        self._full_parameters = dict(model.named_parameters())
        self._check_supported()
        self._mesh = init_device_mesh(accelerator.device.type, (accelerator.num_processes,))
        half = bf16(
            training.precision, accelerator.device
        )  # gathered in bf16 for half the memory; gradients are summed in fp32
        policy = (
            MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32, cast_forward_inputs=False)
            if half
            else MixedPrecisionPolicy()
        )
        terms: dict[str, Any] = {"mesh": self._mesh, "mp_policy": policy, "reshard_after_forward": True}
        # `fully_shard` cannot be undone, so it gets separate modules and parameters around ours, which share their data
        self._put_parameters(
            {name: nn.Parameter(p.data, requires_grad=p.requires_grad) for name, p in self._full_parameters.items()}
        )
        self._layers = list(layers(model.backbone))
        wrapped = {
            layer: _Layer(_shard_module(_Layer(layer), terms)) for _, _, layer in self._layers if self._is_apart(layer)
        }
        for siblings, number, layer in self._layers:
            siblings[number] = wrapped.get(layer, layer)
        self._root: nn.Module | None = _shard_module(_Root(model), terms)
        self.parameters = {name: getattr(*owners[0]) for name, owners in self._places.items()}

    def loss(self, batch: Batch) -> Loss:
        """The model's loss. All processes must make the same number of forward and of backward passes."""
        assert self._root is not None  # until `close`
        return Loss(*self._root(batch))

    def state(self) -> dict[str, Tensor]:
        """Parameters (slices) and buffers by name, like `weights.state` of the plain model."""
        return {name: self.parameters.get(name, tensor) for name, tensor in self._state.items()}

    def gather(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Full tensors of slices, on the CPU and only in the first process; all processes must call it."""
        gathered = {}
        for name, tensor in tensors.items():
            full = (
                tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
            )  # one at a time, since all together may not fit
            if self.accelerator.is_main_process:
                gathered[name] = full.detach().cpu()
        return gathered

    def cut(self, tensor: Tensor, name: str) -> Tensor:
        """This process's slice of the optimiser state of the parameter `name`, from the first process's tensor."""
        parameter = self.parameters[name]
        if tensor.shape != parameter.shape:
            return tensor.to(self.accelerator.device)  # a count of steps
        return distribute_tensor(tensor.to(self.accelerator.device), self._mesh, parameter.placements)

    @torch.no_grad()
    def close(self) -> None:
        """Restore the plain model on the CPU, with the trained weights, in all processes."""
        for name, parameter in self._full_parameters.items():
            parameter.copy_(self.parameters[name].full_tensor())
        for siblings, number, layer in self._layers:
            siblings[number] = layer
        self._put_parameters(self._full_parameters)
        self.parameters, self._root = {}, None
        self.model.cpu()

    def _check_supported(self) -> None:
        """Raises RunError for parameters and devices that `fully_shard` does not support."""
        for name, parameter in self._full_parameters.items():
            if parameter.ndim == 0:
                raise RunError(
                    f"training.shard: the parameter '{name}' is a single number, which cannot be sharded; make it a "
                    "vector of length 1, or train without training.shard"
                )
        if (
            self.accelerator.device.type == "cpu"
            and tuple(int(part) for part in torch.__version__.split(".")[:2]) < ON_CPUS
        ):
            raise RunError(
                f"training.shard on CPUs needs torch {'.'.join(map(str, ON_CPUS))} or newer, but torch is "
                f"{torch.__version__}; update torch, or train without training.shard"
            )

    def _put_parameters(self, parameters: Mapping[str, nn.Parameter]) -> None:
        for name, parameter in parameters.items():
            for owner, attribute in self._places[name]:
                setattr(owner, attribute, parameter)

    def _is_apart(self, layer: nn.Module) -> bool:
        """Whether a layer has parameters and shares none with modules outside the layer."""
        inside = set(layer.modules())
        owners = [{owner for owner, _ in pairs} for pairs in self._places.values()]
        touching = [modules for modules in owners if modules & inside]
        return bool(touching) and all(modules <= inside for modules in touching)


def _shard_module(module: nn.Module, terms: Mapping[str, Any]) -> nn.Module:
    """The same module, sharded. (`fully_shard` adds a class to the module's, and its type has only that class.)"""
    fully_shard(module, **terms)
    return module


class _Root(nn.Module):
    """A model whose output is a tuple: `fully_shard` finds the tensors for its backward hooks in tuples, not in a
    `Loss`."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Batch) -> tuple[Any, ...]:
        loss = self.model(batch)
        return loss.sums, loss.slots, loss.counts, loss.weights


class _Layer(nn.Module):
    """A layer in a wrapper, once for `fully_shard` and once more around it: SqueezeBERT calls `forward` of its layers
    directly, which would skip the hooks that gather parameters."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, *values: Any, **named: Any) -> Any:
        return self.layer(*values, **named)


def layers(module: nn.Module) -> Iterator[tuple[nn.ModuleList, int, nn.Module]]:
    """The items of a module's outermost `nn.ModuleList`s: (list, index, item)."""
    for child in module.children():
        if isinstance(child, nn.ModuleList) and not any(
            isinstance(item, nn.ModuleList | nn.ModuleDict) for item in child
        ):
            yield from ((child, number, item) for number, item in enumerate(child))
        else:
            yield from layers(child)


def places(model: nn.Module) -> dict[str, list[tuple[nn.Module, str]]]:
    """The owners of each parameter: (module, attribute), several for a tied one."""
    owners: dict[nn.Parameter, list[tuple[nn.Module, str]]] = {}
    for owner in model.modules():
        for attribute, parameter in owner.named_parameters(recurse=False, remove_duplicate=False):
            owners.setdefault(parameter, []).append((owner, attribute))
    return {name: owners[parameter] for name, parameter in model.named_parameters()}
