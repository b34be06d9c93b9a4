"""The gradient of an update, and the validation loss: sums and counts over micro-batches and processes.

Counts come with the batches. They are summed over micro-batches and processes before the first forward pass, and each
backward pass starts from its summed losses divided by the update's counts. So the gradients are those of the means over
the full update, however it is split; each loss has its own count. Dropout is drawn for every micro-batch from (seed,
step, update, micro-batch), so neither a resume nor another number of processes changes it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..data.collate import DataStream, by_length
from ..data.plan import Plan
from ..data.seeds import draw_from
from ..examples import Example
from ..oom import ADVICE_SMALLER, OomRetry, out_of_memory
from ..tensors import Batch, Loss
from .context import StepContext
from .distributed import all_reduce_sum, any_rank

Micros = Sequence[tuple[int, Batch]]  # micro-batches of one process, each after its number in the update


@dataclass(frozen=True)
class Material:
    """The training data of a step.

    plan              which of the streams' examples an update takes
    micro_batch_size  in pairs, before memory lacks
    over_batch        the objective whose loss compares all rows of an update, if there is one
    """

    plan: Plan
    streams: Sequence[DataStream]
    micro_batch_size: int
    over_batch: str = ""

    @property
    def losses(self) -> tuple[str, ...]:
        """Names of all losses."""
        return tuple(dict.fromkeys(name for stream in self.streams for name in stream.collate.losses))


@dataclass(frozen=True)
class Means:
    """The losses of an update, over all processes.

    loss      the training loss: the weighted sum of the means
    losses    loss -> its mean; only losses that counted anything
    batches   of this process, each with its share of the training loss
    stopping  whether any process is to stop
    """

    loss: float
    losses: dict[str, float]
    batches: list[tuple[Batch, Tensor]]
    stopping: bool


@dataclass
class Accumulator:
    """Adds up the gradients of a step's updates.

    loss     the losses of a batch on this process's device
    trained  the trainable parameters
    """

    context: StepContext
    material: Material
    loss: Callable[[Batch], Loss]
    trained: Sequence[nn.Parameter]

    def gradients(self, number: int, micros: Micros, stop: Callable[[], bool] = bool) -> Means | None:
        """Compute the gradients of an update's loss over all processes, in `parameter.grad`; None if memory ran out in
        any process. `stop`: called after the passes."""
        processes, names = self.context.accelerator, self.material.losses
        local = [sum(batch.counts.get(name, 0) for _, batch in micros) for name in names]
        totals = torch.tensor(local, dtype=torch.float64, device=processes.device)
        all_reduce_sum(processes, [totals])
        counts = {name: count for name, count in zip(names, totals.tolist(), strict=True) if count}
        sums = torch.zeros(1 + len(counts), dtype=torch.float64, device=processes.device)
        batches, failed = list[tuple[Batch, Tensor]](), False
        try:
            for micro, batch in micros:
                batches.append(self._pass(number, micro, batch.to(processes.device), counts, sums))
        except Exception as error:
            if not out_of_memory(error):
                raise
            failed = True
        has_gradient = [parameter.grad is not None for parameter in self.trained]
        stopping, failed, *reached = any_rank(processes, [stop(), failed, *has_gradient])
        if failed:
            return None
        gradients = []
        for parameter in itertools.compress(self.trained, reached):
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            gradients.append(parameter.grad)
        all_reduce_sum(processes, [sums, *gradients])
        loss, *values = sums.tolist()
        losses = {name: value / counts[name] for name, value in zip(counts, values, strict=True)}
        return Means(loss, losses, batches, stopping)

    def _pass(
        self, number: int, micro: int, batch: Batch, counts: Mapping[str, float], sums: Tensor
    ) -> tuple[Batch, Tensor]:
        """A forward and a backward pass. Adds to `sums` the training loss, then every loss of `counts`; returns the
        batch with its training loss."""
        draw_from(sums.device, self.context.seed, self.context.name, number, micro)
        loss = self.loss(batch)
        mean = loss.over(counts).to(sums.device)
        if mean.requires_grad:  # a batch without any count has no gradient
            mean.backward()
        for place, value in enumerate([mean, *(loss.sums.get(name) for name in counts)]):
            if value is not None:
                sums[place] += value.detach()
        return batch, mean.detach()


def validate(context: StepContext, material: Material, loss: Callable[[Batch], Loss]) -> dict[str, Any]:
    """For the log, of a model in eval mode, without gradients: the loss over all validation examples, each of its parts
    a mean over all of them. The examples are divided among processes."""
    names, device = material.losses, context.accelerator.device
    total = torch.zeros(2, len(names), dtype=torch.float64)  # weighted sums, and counts
    for stream in material.streams:
        for losses in _losses_of_groups(context, material, stream, loss):
            for place, name in enumerate(names):
                total[0, place] += float(losses.sums.get(name, 0.0)) * losses.weights.get(name, 1.0)
                total[1, place] += losses.counts.get(name, 0)
    total = total.to(device)
    all_reduce_sum(context.accelerator, [total])
    return {"validation_loss": sum(value / count for value, count in zip(*total.tolist(), strict=True) if count)}


def _losses_of_groups(
    context: StepContext, material: Material, stream: DataStream, loss: Callable[[Batch], Loss]
) -> Iterator[Loss]:
    """The losses of this process's examples in groups: of similar length, and smaller if memory runs out. Where rows
    are compared, the groups do not depend on the number of processes, and are not split."""
    processes, examples = context.accelerator, stream.source.validation
    rank, world = processes.process_index, processes.num_processes

    def measure(group: Sequence[Example]) -> Loss:
        return loss(stream.collate(group).to(processes.device))

    if material.over_batch:
        size = context.step.training.batch_size
        groups = (examples[first : first + size] for first in range(0, len(examples), size)[rank::world])
        return map(measure, groups)
    examples = examples[rank::world]
    where, advice = f"step '{context.name}', validation", f"{ADVICE_SMALLER}; the last checkpoint is kept"
    retry = OomRetry(where, advice, say=context.progress.say)
    batches = by_length(stream.collate.slots(examples), 32)
    return (losses for batch in batches for _, losses in retry.over([examples[index] for index in batch], measure))
