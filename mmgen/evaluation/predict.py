"""Predict: answers that are no texts, for examples; and for every example of a split, shared out over processes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial

import torch

from ..data.checked import check_predictions
from ..data.collate import Collator, by_length
from ..files import write_text
from ..model import Model
from ..oom import ADVICE_SMALLER, OomRetry
from ..storage import predictions
from ..tensors import Example, Prediction
from ..training.context import StepContext
from ..training.precision import precision
from .shared_out import shared_out


@torch.inference_mode()
def predict(
    model: Model,
    examples: Sequence[Example],
    objective: str,
    inputs: Sequence[str] | None = None,
    batch_size: int = 32,
    retry: OomRetry | None = None,
) -> list[Prediction]:
    """One prediction for each example. `objective`: the one that predicts; `inputs`: which of the model's inputs to
    read (all by default). Leaves the training mode as it was.

    A batch that runs out of memory is predicted in halves; raises RunError when a single example is too much."""
    collate = Collator(model, inputs or model.inputs, (objective,), asks=True)
    retry = retry or OomRetry("predicting", ADVICE_SMALLER)
    training = model.training
    model.eval()
    try:
        found: dict[int, Prediction] = {}
        for batch in by_length(collate.slots(examples), batch_size):
            pieces = retry.over([examples[index] for index in batch], partial(_predicted, model, collate, objective))
            found |= zip(batch, (one for _, predicted in pieces for one in predicted), strict=True)
        return [found[index] for index in range(len(examples))]
    finally:
        model.train(training)


def _predicted(model: Model, collate: Collator, objective: str, examples: Sequence[Example]) -> list[Prediction]:
    batch = collate(examples).to(model.device)
    head = model.objective(objective)
    return check_predictions(head.predict(model, batch, batch.targets[objective]), batch.ids, objective, head)


def predict_split(
    model: Model, context: StepContext, examples: Sequence[Example], objective: str, batch_size: int = 32
) -> None:
    """`predictions.jsonl` in the step's folder, a line an example."""
    model.to(context.accelerator.device).eval()
    accelerator, step = context.accelerator, context.step
    collate = Collator(model, step.inputs, (objective,), asks=True)
    retry = context.retry("predicting", ADVICE_SMALLER, named=lambda index: examples[index].id)

    def predicted(places: Sequence[int]) -> list[Prediction]:
        with precision(step.training.precision, accelerator.device):
            return _predicted(model, collate, objective, [examples[place] for place in places])

    def work(number: int, whole: Sequence[int]) -> Iterator[tuple[int, Prediction]]:
        for piece, made in retry.over(whole, predicted):
            yield from zip(piece, made, strict=True)

    with torch.inference_mode():
        found = shared_out(context, ("predicting", "examples"), collate.slots(examples), batch_size, work)
    if accelerator.is_main_process:
        lines = [json.dumps(asdict(one), ensure_ascii=False) for one in found]
        write_text(context.folder / predictions.FILE, "".join(line + "\n" for line in lines))
    accelerator.wait_for_everyone()
