"""Validate: the mean loss over examples, shared out over processes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from ..data.collate import by_length
from ..data.seeds import resolve
from ..oom import ADVICE_SMALLER, out_of_memory
from ..tensors import Example
from .distributed import all_reduce_sum
from .fsdp import too_large
from .learner import Learner


@torch.no_grad()
def validate(learner: Learner, examples: Sequence[Example]) -> float:
    """The loss over examples, each of its parts a mean over all of them; shared out over processes."""
    model, accelerator = learner.model, learner.accelerator
    batch_size = (
        min(32, learner.training.micro_batch or 32) if learner.sharded else 32
    )  # a batch that is not cut has to fit
    examples = [resolve(example) for example in examples]
    ours = examples[accelerator.process_index :: accelerator.num_processes]
    names = learner.material.collate.losses
    total = torch.zeros(2, len(names), dtype=torch.float64, device=accelerator.device)
    modes = {name: module.training for name, module in model.named_modules()}
    model.eval()
    retry = learner.context.retry(
        "validation", f"{ADVICE_SMALLER}; the last checkpoint is kept", part=learner.material.collate.halves
    )
    measure = partial(_measured, learner)
    for indices in by_length(learner.material.collate.slots(ours), batch_size):
        for _, loss in retry.over([ours[index] for index in indices], measure):
            total += loss
    if learner.sharded:  # all processes make as many passes as the first one, which has most to do
        behind = math.ceil(len(examples[:: accelerator.num_processes]) / batch_size) - math.ceil(len(ours) / batch_size)
        for _ in range(behind):
            measure(examples[:1])
    for name, module in model.named_modules():
        module.training = modes[name]
    all_reduce_sum(accelerator, [total])
    return sum(total / count for total, count in zip(*total.tolist(), strict=True) if count)


def _measured(learner: Learner, examples: Sequence[Example]) -> Tensor:
    """(2, losses) the weighted sum of every loss over examples, and over how many things. Raises RunError where a
    sharded model runs out of memory, since the other processes wait half-way."""
    names = learner.material.collate.losses
    try:
        loss = learner.loss(learner.material.collate(examples).to(learner.accelerator.device))
    except Exception as error:
        if learner.sharded and out_of_memory(error):
            raise too_large(f"step '{learner.context.name}', validation") from None
        raise
    sums = [loss.sums[name].double() * loss.weights.get(name, 1.0) for name in names]
    return torch.stack([torch.stack(sums), sums[0].new_tensor([loss.counts[name] for name in names])])
