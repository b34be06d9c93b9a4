"""Validate: the mean loss over examples, shared out over processes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch

from ..data.collate import by_length
from ..data.seeds import resolve
from ..errors import RunError
from ..oom import ADVICE_SMALLER, out_of_memory
from ..tensors import Example, Loss
from .accumulate import halves
from .distributed import all_reduce_sum
from .fsdp import too_large
from .learner import Learner


@torch.no_grad()
def validate(learner: Learner, examples: Sequence[Example]) -> float:
    """Mean loss a token over examples, shared out over processes."""
    model, accelerator = learner.model, learner.accelerator
    batch_size = (
        min(32, learner.training.micro_batch or 32) if learner.sharded else 32
    )  # a batch that is not cut has to fit
    examples = [resolve(example) for example in examples]
    ours = examples[accelerator.process_index :: accelerator.num_processes]
    total = torch.zeros(2, dtype=torch.float64, device=accelerator.device)
    modes = {name: module.training for name, module in model.named_modules()}
    model.eval()
    for indices in by_length(learner.collate.slots(ours), batch_size):
        for loss in _losses(learner, [ours[index] for index in indices]):
            total += torch.stack([loss.sum.double(), loss.count.double()])
    if learner.sharded:  # all processes make as many passes as the first one, which has most to do
        behind = math.ceil(len(examples[:: accelerator.num_processes]) / batch_size) - math.ceil(len(ours) / batch_size)
        for _ in range(behind):
            list(_losses(learner, examples[:1]))
    for name, module in model.named_modules():
        module.training = modes[name]
    all_reduce_sum(accelerator, [total])
    return (total[0] / total[1]).item()


def _losses(learner: Learner, examples: list[Example]) -> Iterator[Loss]:
    """The loss of a batch, or those of its halves where memory is short."""
    try:
        yield learner.loss(learner.collate(examples).to(learner.accelerator.device))
        return
    except Exception as error:
        where, pieces = f"step '{learner.name}', validation", halves(examples, 1)
        if not out_of_memory(error):
            raise
        if learner.sharded:
            raise too_large(where) from None
        if len(pieces) == 1:
            raise RunError(
                f"{where}: out of memory with a single pair (example '{examples[0].id}'); {ADVICE_SMALLER}; the last "
                "checkpoint is kept"
            ) from None
    for piece in pieces:
        yield from _losses(learner, piece)
