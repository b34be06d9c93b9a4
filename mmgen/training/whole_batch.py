"""Losses over the whole batch: features of all micro-batches in all processes, then the loss and its gradients by them.

See `mmgen.objectives.BatchObjective`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from torch import Tensor, distributed

from ..tensors import Batch, Loss

Key = tuple[int, str]  # (number of a source, objective)
Place = tuple[int, ...]  # of a piece in the update
Compare = Callable[[str, Mapping[str, Tensor]], Loss]  # `Model.compare`


@dataclass(frozen=True)
class WholeBatch:
    """The objectives of a step that compare the rows of a whole batch.

    features  `Model.features`, in the step's precision
    compare   `Model.compare`, in the step's precision
    weights   "objective.loss" -> factor of the loss
    """

    features: Callable[[Batch], Mapping[str, Mapping[str, Tensor]]]
    compare: Compare
    weights: Mapping[str, float]

    @property
    def objectives(self) -> set[str]:
        return {name.partition(".")[0] for name in self.weights}


@dataclass(frozen=True)
class Rows:
    """The features of one objective for the rows of one piece, by name."""

    key: Key
    place: Place
    features: Mapping[str, Tensor]


@dataclass(frozen=True)
class Compared:
    """Losses over the whole batch, and their gradients.

    gradients  place of a piece -> objective -> name of a feature -> (B, ...)
    mean       the weighted sum of the mean losses
    sums       (number of a source, "objective.loss") -> its sum
    """

    gradients: dict[Place, dict[str, dict[str, Tensor]]] = field(default_factory=dict)
    mean: float = 0.0
    sums: dict[Key, Tensor] = field(default_factory=dict)


def compare(rows: Sequence[Rows], losses: Compare, factors: Mapping[str, float], keeps: bool) -> Compared:
    """The losses of these rows, compared by source. `factors`: "objective.loss" -> what its sum is multiplied with.
    `keeps`: whether gradients of parameters that the losses read are kept too, in `parameter.grad`: in one process,
    since all compute them."""
    compared = Compared()
    means: list[Tensor] = []
    leaves: dict[Key, dict[str, Tensor]] = {}
    for key in sorted({row.key for row in rows}):
        name = key[1]
        of_key = sorted((row for row in rows if row.key == key), key=lambda row: row.place)
        together = {f: torch.cat([row.features[f] for row in of_key]) for f in of_key[0].features}
        floating = {f: value.requires_grad_() for f, value in together.items() if value.is_floating_point()}
        leaves[key] = floating
        for loss, total in losses(name, together).sums.items():
            compared.sums[key[0], f"{name}.{loss}"] = total.detach()
            if factor := factors.get(f"{name}.{loss}"):
                means.append(total * factor)
    if not means:
        return compared
    mean = torch.stack(means).sum()
    flat = [leaf for floating in leaves.values() for leaf in floating.values()]
    if mean.requires_grad and keeps:
        mean.backward()
    elif mean.requires_grad:
        for leaf, gradient in zip(flat, torch.autograd.grad(mean, flat, allow_unused=True), strict=True):
            leaf.grad = gradient
    for key, floating in leaves.items():
        _hand_out(compared, key, rows, floating)
    return Compared(compared.gradients, mean.item(), compared.sums)


def _hand_out(compared: Compared, key: Key, rows: Sequence[Rows], leaves: Mapping[str, Tensor]) -> None:
    """The gradients of concatenated features, to the pieces that they came from."""
    first = 0
    for row in sorted((row for row in rows if row.key == key), key=lambda row: row.place):
        end = first + len(next(iter(row.features.values())))
        parts = {name: leaf.grad[first:end] for name, leaf in leaves.items() if leaf.grad is not None}
        compared.gradients.setdefault(row.place, {})[key[1]] = parts
        first = end


def gather(accelerator: Accelerator, rows: Sequence[Rows]) -> list[Rows]:
    """The rows of all processes, in every process."""
    if accelerator.num_processes == 1:
        return [*rows]
    shapes = [{name: (tuple(value.shape), value.dtype) for name, value in row.features.items()} for row in rows]
    described = [(row.key, row.place, shape) for row, shape in zip(rows, shapes, strict=True)]
    gathered = []
    for rank, descriptions in gather_object([(accelerator.process_index, described)]):
        for number, (key, place, shapes_by_name) in enumerate(descriptions):
            features = {}
            for name, (shape, dtype) in shapes_by_name.items():
                if rank == accelerator.process_index:
                    features[name] = rows[number].features[name].contiguous()
                else:
                    features[name] = torch.empty(shape, dtype=dtype, device=accelerator.device)
                distributed.broadcast(features[name], rank)
            gathered.append(Rows(key, place, features))
    return gathered
