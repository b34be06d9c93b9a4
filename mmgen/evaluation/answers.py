"""Answers of a model, texts or predictions: for examples in Python, for a step's split, and while the step trains."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object

from ..data.collate import Collator, by_length
from ..data.part_checks import predict_with, write_texts
from ..data.seeds import seeded
from ..decoding import DecodingConfig
from ..errors import DataError
from ..examples import Example, Generation, Prediction
from ..files import write_text
from ..model import Model
from ..oom import ADVICE_FEWER_TEXTS, ADVICE_SMALLER, OomRetry
from ..progress import Progress
from ..prompts import prompts_of
from ..recipe.tables import GENERATOR, Recipe
from ..storage import generations
from ..training.context import StepContext
from ..training.precision import precision

# for progress and errors: the activity, its unit, and what to do if memory runs out
WRITING, PREDICTING = ("writing", "texts", ADVICE_FEWER_TEXTS), ("predicting", "examples", ADVICE_SMALLER)


def generate(
    model: Model,
    examples: Sequence[Example],
    options: DecodingConfig | None = None,
    inputs: Sequence[str] | None = None,
    batch_size: int = 32,
) -> list[list[Generation]]:
    """`options.texts` texts for each example, best first. `inputs`: the model's inputs to read (default:
    all). The training mode is unchanged afterwards.

    A batch that runs out of memory is split in halves (samples differ then). Raises RunError if a single example does
    not fit."""
    return _in_eval_mode(model, options or model.decoding, examples, inputs, batch_size)


def predict(
    model: Model, examples: Sequence[Example], objective: str, inputs: Sequence[str] | None = None, batch_size: int = 32
) -> list[Prediction]:
    """One prediction for each example. `objective`: the objective that predicts; `inputs`, the mode and the memory: see
    `generate`."""
    return _in_eval_mode(model, objective, examples, inputs, batch_size)


@torch.inference_mode()
def _in_eval_mode(
    model: Model,
    asked: DecodingConfig | str,
    examples: Sequence[Example],
    inputs: Sequence[str] | None,
    batch_size: int,
) -> list[Any]:
    if batch_size < 1:
        raise DataError(f"batch_size must be at least 1, but is {batch_size}")
    training = model.training
    model.eval()
    try:
        return _answers(model, asked, examples, inputs or model.inputs, batch_size)
    finally:
        model.train(training)


def _answers(
    model: Model,
    asked: DecodingConfig | str,
    examples: Sequence[Example],
    inputs: Sequence[str],
    batch_size: int,
    context: StepContext | None = None,
) -> list[Any]:
    """The answers of a model in eval mode: texts, by decoding options, or the predictions of an objective. For a step,
    each process has its share of the batches, and every piece of a batch a seed of its own."""
    objective, (doing, unit, advice) = (asked, PREDICTING) if isinstance(asked, str) else (GENERATOR, WRITING)
    reads_targets = isinstance(asked, str) or model.generator.reader.reads_prompts
    collate = Collator(model, inputs, [objective] * reads_targets, predicting=True)
    rank, count, progress, label = 0, 1, Progress(), ""
    if context:
        rank, count = context.accelerator.process_index, context.accelerator.num_processes
        progress, label = context.progress, f"{context.name}: {doing}"

    def answer(number: int, batch: Sequence[int], piece: Sequence[int]) -> list[Any]:
        cut = piece if len(piece) < len(batch) else ()  # the seed of a full batch does not depend on pieces
        seed = seeded(context.seed, context.name, "write", number, *cut) if context else contextlib.nullcontext()
        with seed, precision(context.step.training.precision if context else "fp32", model.device):
            asked_for = [examples[index] for index in piece]
            collated = collate(asked_for).to(model.device)
            if isinstance(asked, str):
                return predict_with(model, asked, collated)
            return write_texts(model, collated, asked, asked_for)

    retry = OomRetry(doing, advice, named=lambda index: examples[index].id)
    if context:
        retry.where, retry.say = f"step '{context.name}', {doing}", context.progress.say
    results = list[tuple[int, Any]]()
    with progress.task(label, len(examples), unit) as advance:
        for number, batch in enumerate(by_length(collate.slots(examples), batch_size)):
            if number % count == rank:
                for piece, answers in retry.over(batch, partial(answer, number, batch)):
                    results += zip(piece, answers, strict=True)
            advance(len(batch))
    return [answer for _, answer in sorted(gather_object(results) if count > 1 else results, key=itemgetter(0))]


def write_answers(
    model: Model, context: StepContext, recipe: Recipe, examples: Sequence[Example], batch_size: int = 32
) -> None:
    """Write `generations.jsonl` or `predictions.jsonl` in the step's folder, see `split_answers`."""
    accelerator = context.accelerator
    model.to(accelerator.device).eval()  # inference mode would keep moved parameters from training later
    with torch.inference_mode():
        answers = split_answers(model, context, recipe, examples, batch_size)
    if accelerator.is_main_process:
        lines = (
            generations.as_line(answer) if isinstance(answer, list) else json.dumps(asdict(answer), ensure_ascii=False)
            for answer in answers
        )
        write_text(context.folder / answers_file(recipe, context.name), "".join(line + "\n" for line in lines))
    accelerator.wait_for_everyone()


def answers_file(recipe: Recipe, step: str) -> str:
    """The file of a step's texts or predictions, in its folder."""
    return generations.GENERATIONS if recipe.makes_texts(step) else generations.PREDICTIONS


def read_answers(recipe: Recipe, step: str, folder: Path) -> list[Generation] | list[Prediction]:
    """The best text, or the prediction, of each example in a step's folder. Raises RunError."""
    if recipe.makes_texts(step):
        return [texts[0] for texts in generations.read(folder)]
    return generations.read_predictions(folder)


def split_answers(
    model: Model, context: StepContext, recipe: Recipe, examples: Sequence[Example], batch_size: int = 32
) -> list[Any]:
    """What a step's model, in eval mode, answers for examples: the texts of each, best first, or its prediction. All
    processes call it, and the first gets all answers. Each batch has its own random seed, so the number of processes
    does not change samples. torch's random state is as before afterwards.

    A batch that runs out of memory is split in halves, separately in each process. Greedy search and beam search find
    the same texts then; samples differ, since each piece has its own seed (the same splits give the same samples)."""
    objective, kind = recipe.predicts(context.name) or (GENERATOR, "text")
    if kind == "text":
        check_prompts(examples)
    asked = recipe.decoding_of(context.name) if kind == "text" else objective
    return _answers(model, asked, examples, context.step.inputs, batch_size, context)


def check_prompts(examples: Sequence[Example]) -> None:
    """Raises DataError for an example with several prompts: one text is scored, but each prompt would have its own."""
    for example in examples:
        if len(prompts := {*prompts_of(example)}) > 1:
            raise DataError(
                f"example '{example.id}' has {len(prompts)} different prompts; a split that is scored must have one "
                "example per prompt"
            )
