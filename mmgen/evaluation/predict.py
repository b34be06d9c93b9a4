"""Predict values other than texts (labels, choices, regions) for examples or a split, over all processes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial

import torch

from ..data.collate import Collator, by_length
from ..data.part_checks import predict_with
from ..files import write_text
from ..model import Model
from ..oom import ADVICE_SMALLER, OomRetry
from ..storage import predictions
from ..tensors import Example, Prediction
from ..training.context import StepContext
from ..training.precision import precision
from .distribute import run_distributed


@torch.inference_mode()
def predict(
    model: Model,
    examples: Sequence[Example],
    objective: str,
    inputs: Sequence[str] | None = None,
    batch_size: int = 32,
    retry: OomRetry | None = None,
) -> list[Prediction]:
    """One prediction for each example. `objective`: the objective that predicts; `inputs`: the model's inputs to read
    (default: all). The training mode is unchanged afterwards.

    A batch that runs out of memory is split in halves. Raises RunError if a single example does not fit."""
    collate = Collator(model, inputs or model.inputs, (objective,), predicting=True)
    retry = retry or OomRetry("predicting", ADVICE_SMALLER)
    training = model.training
    model.eval()
    try:
        results: dict[int, Prediction] = {}
        for batch in by_length(collate.slots(examples), batch_size):
            pieces = retry.over(
                [examples[index] for index in batch], partial(_predict_batch, model, collate, objective)
            )
            results |= zip(batch, (prediction for _, predicted in pieces for prediction in predicted), strict=True)
        return [results[index] for index in range(len(examples))]
    finally:
        model.train(training)


def _predict_batch(model: Model, collate: Collator, objective: str, examples: Sequence[Example]) -> list[Prediction]:
    batch = collate(examples).to(model.device)
    return predict_with(model, objective, batch)


def predict_split(
    model: Model, context: StepContext, examples: Sequence[Example], objective: str, batch_size: int = 32
) -> None:
    """Write `predictions.jsonl` in the step's folder, a line per example."""
    model.to(context.accelerator.device).eval()
    accelerator = context.accelerator
    with torch.inference_mode():
        results = split_predictions(model, context, examples, objective, batch_size)
    if accelerator.is_main_process:
        lines = [json.dumps(asdict(prediction), ensure_ascii=False) for prediction in results]
        write_text(context.folder / predictions.FILE, "".join(line + "\n" for line in lines))
    accelerator.wait_for_everyone()


def split_predictions(
    model: Model, context: StepContext, examples: Sequence[Example], objective: str, batch_size: int = 32
) -> list[Prediction]:
    """The predictions of a model in eval mode, in the main process."""
    accelerator, step = context.accelerator, context.step
    collate = Collator(model, step.inputs, (objective,), predicting=True)
    retry = context.retry("predicting", ADVICE_SMALLER, named=lambda index: examples[index].id)

    def predict_piece(places: Sequence[int]) -> list[Prediction]:
        with precision(step.training.precision, accelerator.device):
            return _predict_batch(model, collate, objective, [examples[place] for place in places])

    def work(number: int, indices: Sequence[int]) -> Iterator[tuple[int, Prediction]]:
        for piece, predictions_of_piece in retry.over(indices, predict_piece):
            yield from zip(piece, predictions_of_piece, strict=True)

    return run_distributed(context, ("predicting", "examples"), collate.slots(examples), batch_size, work)
