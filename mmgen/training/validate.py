"""After an epoch, in eval mode: the mean validation loss over all processes, scores that choose the best epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import torch
from accelerate.utils import broadcast_object_list
from torch import Tensor

from ..data.collate import by_length
from ..data.sources import DataStream
from ..errors import RunError, did_you_mean
from ..model import Model
from ..oom import ADVICE_SMALLER
from ..tensors import Example
from .distributed import all_reduce_sum
from .learner import Learner

Result = TypeVar("Result")


@torch.no_grad()
def validate(learner: Learner) -> dict[str, Any]:
    """For the log: the loss over all validation examples, each of its parts a mean over all of them; with several
    sources, also the loss of each source. The examples are divided among processes."""
    model, streams = learner.model, learner.material.streams
    total, scores = in_eval_mode(
        model,
        lambda _: (
            torch.stack([_total_loss(learner, stream) for stream in streams]),
            _validation_scores(learner),
        ),  # (sources, 2, losses)
    )
    all_reduce_sum(learner.accelerator, [total])
    losses = {"validation_loss": _mean_loss(total.sum(0)), **({"validation_scores": scores} if scores else {})}
    if len(streams) == 1:
        return losses
    by_source = {
        stream.source.name: source_total
        for stream, source_total in zip(streams, total, strict=True)
        if stream.source.validation
    }
    return {**losses, "validation_losses": {name: _mean_loss(source_total) for name, source_total in by_source.items()}}


@torch.no_grad()
def in_eval_mode(model: Model, call: Callable[[Model], Result]) -> Result:
    """What `call` gives for the model in eval mode. Afterwards every module is in the mode that it had."""
    modes = {name: module.training for name, module in model.named_modules()}
    model.eval()
    result = call(model)
    for name, module in model.named_modules():
        module.training = modes[name]
    return result


def _validation_scores(learner: Learner) -> dict[str, float | None]:
    """Scores of the validation examples by column, in all processes; empty without `metric_for_best_model`. Raises
    RunError if that column has no value."""
    if learner.scores is None:
        return {}
    (scores,) = broadcast_object_list([dict(learner.scores(learner.model))])
    name = learner.training.metric_for_best_model
    if scores.get(name) is None:
        missing = f"is not a score of this step{did_you_mean(str(name), [*scores])}; choose from: {', '.join(scores)}"
        problem = "has no value on the validation split" if name in scores else missing
        raise RunError(f"step '{learner.context.name}': training.metric_for_best_model: '{name}' {problem}")
    return scores


def _mean_loss(total: Tensor) -> float:
    return sum(total / count for total, count in zip(*total.tolist(), strict=True) if count)


def _total_loss(learner: Learner, stream: DataStream) -> Tensor:
    """(2, losses) the weighted sum of every loss over this process's examples of a source, and its counts."""
    accelerator, examples = learner.accelerator, stream.source.validation
    rank, world = accelerator.process_index, accelerator.num_processes
    total = torch.zeros(2, len(learner.material.losses), dtype=torch.float64, device=accelerator.device)
    measure = partial(_measure_losses, learner, stream)
    if learner.material.over_batch:  # rows are compared in groups that do not depend on the number of processes
        for group in islice(_group_by_pairs(stream, learner.training.batch_size), rank, None, world):
            total += measure(group)
        return total
    ours = examples[rank::world]
    retry = learner.context.retry(
        "validation", f"{ADVICE_SMALLER}; the last checkpoint is kept", part=stream.collate.halves
    )
    for indices in by_length(stream.collate.slots(ours), 32):
        for _, loss in retry.over([ours[index] for index in indices], measure):
            total += loss
    return total


def _measure_losses(learner: Learner, stream: DataStream, examples: Sequence[Example]) -> Tensor:
    """(2, losses) weighted sums and counts of some examples, in the order of all losses."""
    loss = learner.loss(stream.collate(examples).to(learner.accelerator.device))
    names, none = learner.material.losses, torch.zeros((), dtype=torch.float64, device=learner.accelerator.device)
    weighted = [loss.sums[name].double() * loss.weights.get(name, 1.0) if name in loss.sums else none for name in names]
    return torch.stack([torch.stack(weighted), none.new_tensor([loss.counts.get(name, 0) for name in names])])


def _group_by_pairs(stream: DataStream, batch_size: int) -> Iterator[list[Example]]:
    """The validation examples in groups that end once their pairs reach `batch_size`."""
    group: list[Example] = []
    pairs = 0
    for example in stream.source.validation:
        group.append(example)
        pairs += stream.collate.pairs(example)
        if pairs >= batch_size:
            yield group
            group, pairs = [], 0
    if group:
        yield group
