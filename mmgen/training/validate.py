"""After an epoch: the mean validation loss over all processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from ..data.collate import by_length
from ..data.sources import DataStream
from ..examples import Example
from ..oom import ADVICE_SMALLER, OomRetry
from ..tensors import Batch, Loss
from .accumulate import Material
from .context import StepContext
from .distributed import all_reduce_sum


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
