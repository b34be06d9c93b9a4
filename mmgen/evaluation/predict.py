"""Predict: answers that are no texts, for examples; and for every example of a split, shared out over processes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

import torch
from accelerate.utils import gather_object

from ..data.checked import check_predictions
from ..data.collate import Collator, by_length
from ..data.seeds import resolve
from ..files import write_text
from ..model import Model
from ..oom import ADVICE_SMALLER, OomRetry
from ..storage import predictions
from ..tensors import Example, Prediction
from ..training.context import StepContext
from ..training.precision import precision


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
    resolved = [resolve(example) for example in examples]
    training = model.training
    model.eval()
    try:
        found: dict[int, Prediction] = {}
        for batch in by_length(collate.slots(resolved), batch_size):
            pieces = retry.over([resolved[index] for index in batch], partial(_predicted, model, collate, objective))
            found |= zip(batch, (one for _, predicted in pieces for one in predicted), strict=True)
        return [found[index] for index in range(len(resolved))]
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
    own = examples[accelerator.process_index :: accelerator.num_processes]
    retry = context.retry("predicting", ADVICE_SMALLER)
    found: list[tuple[int, Prediction]] = []
    with context.progress.task(f"{context.name}: predicting", len(examples), "examples") as advance:
        for first in range(0, len(own), batch_size):
            some = own[first : first + batch_size]
            with precision(step.training.precision, accelerator.device):
                made = predict(model, some, objective, step.inputs, batch_size, retry)
            places = range(first, first + len(some))
            found += [
                (accelerator.process_index + place * accelerator.num_processes, one)
                for place, one in zip(places, made, strict=True)
            ]
            advance(min(len(some) * accelerator.num_processes, len(examples)))
    if accelerator.num_processes > 1:
        found = gather_object(found)
    if accelerator.is_main_process:
        lines = [json.dumps(asdict(one), ensure_ascii=False) for _, one in sorted(found, key=lambda pair: pair[0])]
        write_text(context.folder / predictions.FILE, "".join(line + "\n" for line in lines))
    accelerator.wait_for_everyone()
