"""After an epoch, in eval mode: the mean validation loss over all processes, scores that choose the best epoch."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import torch
from accelerate.utils import broadcast_object_list
from torch import Tensor

from ..data.collate import by_length
from ..data.sources import DataStream
from ..errors import RunError, did_you_mean
from ..model import Model
from ..oom import ADVICE_SMALLER, out_of_memory
from ..tensors import Batch, Example
from .distributed import all_reduce_sum
from .fsdp import too_large
from .learner import Learner
from .whole_batch import Rows, WholeBatch, compare

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
    accelerator = learner.accelerator
    batch_size = (
        min(32, learner.training.micro_batch_size or 32) if learner.sharded else 32
    )  # a batch that cannot be split must fit
    examples = stream.source.validation
    ours = examples[accelerator.process_index :: accelerator.num_processes]
    total = torch.zeros(2, len(learner.material.losses), dtype=torch.float64, device=accelerator.device)
    if learner.whole_batch is not None:
        total += _total_compared(learner, stream, learner.whole_batch)
        if learner.whole_batch.objectives >= {*stream.collate.targets}:
            return total
    retry = learner.context.retry(
        "validation", f"{ADVICE_SMALLER}; the last checkpoint is kept", part=stream.collate.halves
    )
    measure = partial(_measure_losses, learner, stream)
    for indices in by_length(stream.collate.slots(ours), batch_size):
        for _, loss in retry.over([ours[index] for index in indices], measure):
            total += loss
    if learner.sharded:  # all processes make as many passes as the first one, which has the most
        behind = math.ceil(len(examples[:: accelerator.num_processes]) / batch_size) - math.ceil(len(ours) / batch_size)
        for _ in range(behind):
            measure(examples[:1])
    return total


def _measure_losses(learner: Learner, stream: DataStream, examples: Sequence[Example]) -> Tensor:
    """(2, losses) of some examples. Raises RunError if a sharded model runs out of memory, since the other processes
    wait in the middle of a pass."""
    compared = learner.whole_batch.objectives if learner.whole_batch is not None else set()
    batch = stream.collate(examples).to(learner.accelerator.device)
    batch = replace(batch, targets={name: targets for name, targets in batch.targets.items() if name not in compared})
    try:
        loss = learner.loss(batch)
    except Exception as error:
        if learner.sharded and out_of_memory(error):
            raise too_large(f"step '{learner.context.name}', validation") from None
        raise
    return _as_row(learner, loss.sums, loss.weights, loss.counts)


def _as_row(
    learner: Learner, sums: Mapping[str, Tensor], weights: Mapping[str, float], counts: Mapping[str, float]
) -> Tensor:
    """(2, losses) weighted sums and counts, in the order of all losses."""
    names, none = learner.material.losses, torch.zeros((), dtype=torch.float64, device=learner.accelerator.device)
    weighted = [sums[name].double() * weights.get(name, 1.0) if name in sums else none for name in names]
    return torch.stack([torch.stack(weighted), none.new_tensor([counts.get(name, 0) for name in names])])


def _total_compared(learner: Learner, stream: DataStream, whole_batch: WholeBatch) -> Tensor:
    """(2, losses) of objectives that compare rows, over groups of `batch_size` pairs in the order of the data, divided
    among processes."""
    accelerator = learner.accelerator
    total = torch.zeros(2, len(learner.material.losses), dtype=torch.float64, device=accelerator.device)
    retry = learner.context.retry("validation", f"{ADVICE_SMALLER}; the last checkpoint is kept")

    def read(examples: Sequence[Example]) -> Batch:
        batch = stream.collate(examples).to(accelerator.device)
        comparing = {name: targets for name, targets in batch.targets.items() if name in whole_batch.objectives}
        return replace(batch, targets=comparing)

    def features(examples: Sequence[Example]) -> tuple[dict[str, float], list[Rows]]:
        batch = read(examples)
        by_name = whole_batch.features(batch).items()
        return batch.counts, [Rows((0, name), (), values) for name, values in by_name]

    for number, group in enumerate(_group_by_pairs(stream, learner.training.batch_size)):
        if number % accelerator.num_processes != accelerator.process_index:
            continue
        counts, rows = Counter[str](), list[Rows]()
        for first in range(0, len(group), 32):
            for _, (piece_counts, piece_rows) in retry.over(group[first : first + 32], features):
                counts.update(piece_counts)
                rows += [replace(row, place=(len(rows),)) for row in piece_rows]
        compared = compare(rows, whole_batch.compare, {}, keeps=False)
        total += _as_row(
            learner, {name: value for (_, name), value in compared.sums.items()}, whole_batch.weights, counts
        )
    return total


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
