"""After an epoch, in eval mode: the mean validation loss over all processes, scores that choose the best epoch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from accelerate.utils import broadcast_object_list
from torch import Tensor

from ..data.collate import by_length
from ..data.sources import DataStream
from ..errors import RunError, did_you_mean
from ..examples import Example
from ..model import Model
from ..oom import ADVICE_SMALLER
from ..tensors import Batch, Loss
from .accumulate import Material
from .context import StepContext
from .distributed import all_reduce_sum

ScoreModel = Callable[[Model], Mapping[str, float | None]]  # in the main process: columns of the table -> values


@contextlib.contextmanager
def in_eval_mode(model: Model) -> Iterator[None]:
    """The model in eval mode, without gradients. Afterwards every module is in the mode that it had."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    with torch.no_grad():
        yield
    for module, training in modes:
        module.training = training


def validate(context: StepContext, material: Material, loss: Callable[[Batch], Loss]) -> dict[str, Any]:
    """For the log: the loss over all validation examples, each of its parts a mean over all of them; with several
    sources, also the loss of each source. The examples are divided among processes."""
    names, device = material.losses, context.accelerator.device

    def measure(stream: DataStream, examples: Sequence[Example]) -> Tensor:
        """(2, losses) weighted sums and counts."""
        losses = loss(stream.collate(examples).to(device))
        sums = [float(losses.sums.get(name, 0.0)) * losses.weights.get(name, 1.0) for name in names]
        return torch.tensor([sums, [losses.counts.get(name, 0) for name in names]], dtype=torch.float64)

    total = torch.zeros(len(material.streams), 2, len(names), dtype=torch.float64)
    for number, stream in enumerate(material.streams):
        for measured in _measure_in_groups(context, material, stream, partial(measure, stream)):
            total[number] += measured
    total = total.to(device)
    all_reduce_sum(context.accelerator, [total])
    record: dict[str, Any] = {"validation_loss": _mean_loss(total.sum(0))}
    if len(material.streams) > 1:
        of_sources = zip(material.streams, total, strict=True)
        record["validation_losses"] = {
            stream.source.name: _mean_loss(of_source) for stream, of_source in of_sources if stream.source.validation
        }
    return record


def _mean_loss(total: Tensor) -> float:
    return sum(total / count for total, count in zip(*total.tolist(), strict=True) if count)


def _measure_in_groups(
    context: StepContext, material: Material, stream: DataStream, measure: Callable[[Sequence[Example]], Tensor]
) -> Iterator[Tensor]:
    """What `measure` gives for this process's examples in groups: of similar length, and smaller if memory runs out.
    Where rows are compared, the groups do not depend on the number of processes, and are not split."""
    processes, examples = context.accelerator, stream.source.validation
    rank, world = processes.process_index, processes.num_processes
    if material.over_batch:
        size = context.step.training.batch_size
        for first in range(0, len(examples), size)[rank::world]:
            yield measure(examples[first : first + size])
        return
    examples = examples[rank::world]
    retry = context.retry("validation", f"{ADVICE_SMALLER}; the last checkpoint is kept")
    for indices in by_length(stream.collate.slots(examples), 32):
        yield from (result for _, result in retry.over([examples[index] for index in indices], measure))


def scores_of_validation(context: StepContext, model: Model, scores: ScoreModel) -> Mapping[str, float | None]:
    """Scores of the validation examples by column, in all processes. Raises RunError if `metric_for_best_model` has no
    value."""
    columns = dict(scores(model))
    context.accelerator.wait_for_everyone()  # the first process scores alone
    (columns,) = broadcast_object_list([columns])
    name = context.step.training.metric_for_best_model
    if columns.get(name) is None:
        missing = f"is not a score of this step{did_you_mean(str(name), [*columns])}; choose from: {', '.join(columns)}"
        problem = "has no value on the validation split" if name in columns else missing
        raise RunError(f"step '{context.name}': training.metric_for_best_model: '{name}' {problem}")
    return columns
