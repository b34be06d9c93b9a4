"""Answers of a model, texts or predictions: for examples in Python, for a step's split, and while the step trains."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object

from ..configs import LIKELIHOOD
from ..data.collate import Collator, by_length
from ..data.part_checks import predict_with, write_texts
from ..data.seeds import seed_from, seeded
from ..decoding import DecodingConfig
from ..errors import DataError
from ..examples import Example, Generation, Likelihood, Prediction
from ..files import write_text
from ..model import Model
from ..oom import ADVICE_FEWER_TEXTS, ADVICE_SMALLER, OomRetry
from ..progress import Progress
from ..prompts import prompts_of
from ..recipe.tables import GENERATOR, Recipe
from ..storage import generations
from ..tensors import Batch
from ..training.context import StepContext, precision
from .likelihood import likelihoods

BATCH_SIZE = 32
log = logging.getLogger("mmgen")
# for progress and errors: the activity, its unit, and what to do if memory runs out
WRITING, PREDICTING = ("writing", "texts", ADVICE_FEWER_TEXTS), ("predicting", "examples", ADVICE_SMALLER)
READING = ("reading references", "examples", ADVICE_SMALLER)
# texts, by decoding options; the predictions of an objective; or what a function makes of a batch with its targets
Asked = DecodingConfig | str | Callable[[Model, Batch, Sequence[Example]], list[Any]]


@torch.inference_mode()
def generate(
    model: Model,
    examples: Sequence[Example],
    options: Asked | None = None,
    inputs: Sequence[str] | None = None,
    batch_size: int = BATCH_SIZE,
) -> list[list[Generation]]:
    """`options.texts` texts for each example, best first. `inputs`: the model's inputs to read (default: all). The
    training mode is unchanged afterwards.

    Samples depend on torch's random numbers and the example's id. A batch that runs out of memory is split in halves.
    Raises RunError if a single example does not fit."""
    training = model.training
    model.eval()
    try:
        return _answers(model, options or model.decoding, examples, inputs or model.inputs, batch_size)
    finally:
        model.train(training)


def predict(
    model: Model, examples: Sequence[Example], objective: str, inputs: Sequence[str] | None = None, **more: int
) -> list[Prediction]:
    """One prediction of an objective for each example. `inputs`, `more`: see `generate`."""
    predictions: list[Any] = generate(model, examples, objective, inputs, **more)
    return predictions


def likelihood(
    model: Model, examples: Sequence[Example], inputs: Sequence[str] | None = None, **more: int
) -> list[list[Likelihood]]:
    """How probable all targets of each example are. `inputs`, `more`: see `generate`."""
    results: list[Any] = generate(model, examples, likelihoods, inputs, **more)
    return results


def _answers(
    model: Model,
    asked: Asked,
    examples: Sequence[Example],
    inputs: Sequence[str],
    batch_size: int,
    context: StepContext | None = None,
) -> list[Any]:
    """The answers of a model in eval mode. For a step, each process has its share of the batches."""
    objective, (where, unit, advice) = (asked, PREDICTING) if isinstance(asked, str) else (GENERATOR, WRITING)
    reads_targets = isinstance(asked, str) or model.generator.reader.reads_prompts
    collate = Collator(model, inputs, [objective] * reads_targets, predicting=True)
    if callable(asked):
        collate, (where, unit, advice) = Collator(model, inputs), READING
    rank, count, progress, dtype = 0, 1, Progress(), "fp32"
    say: Callable[[str], None] = log.warning
    samples = isinstance(asked, DecodingConfig) and asked.samples
    place = (context.seed, context.name) if context else (int(torch.randint(2**62, ())) if samples else 0,)
    if context:
        rank, count = context.accelerator.process_index, context.accelerator.num_processes
        progress, dtype, where = context.progress, context.step.training.precision, f"{context.name}: {where}"
        say = progress.say

    def answer(number: int, batch: Sequence[int], piece: Sequence[int]) -> list[Any]:
        with seeded(*place, "write", number), precision(dtype, model.device):
            read = [examples[index] for index in piece]
            collated = collate(read).to(model.device)
            if callable(asked):
                return asked(model, collated, read)
            if isinstance(asked, str):
                return predict_with(model, asked, collated)
            seeds = [seed_from(*place, "write", example.id) for example in read] if samples else ()
            return write_texts(model, collated, asked, read, seeds)

    retry, results = OomRetry(where, advice, named=lambda index: examples[index].id, say=say), list[tuple[int, Any]]()
    with progress.task(where, len(examples), unit) as advance:
        for number, batch in enumerate(by_length(collate.slots(examples), batch_size)):
            if number % count == rank:
                for piece, answers in retry.over(batch, partial(answer, number, batch)):
                    results += zip(piece, answers, strict=True)
            advance(len(batch))
    return [answer for _, answer in sorted(gather_object(results) if count > 1 else results, key=itemgetter(0))]


def write_answers(model: Model, context: StepContext, examples: Sequence[Example], files: Mapping[str, Asked]) -> None:
    """Write the answers to examples into the step's folder. `files`: of `answers_files`. All processes call it. A
    sampled text depends on the run's seed and the example's id alone. torch's random state is as before afterwards.
    Raises DataError for an example with several prompts: one text is scored, but each prompt would have its own.

    A batch that runs out of memory is split in halves, separately in each process."""
    accelerator = context.accelerator
    model.to(accelerator.device).eval()  # inference mode would keep moved parameters from training later
    for file, asked in files.items():
        if several := [e.id for e in examples if isinstance(asked, DecodingConfig) and len({*prompts_of(e)}) > 1]:
            raise DataError(f"example '{several[0]}' has several prompts; a split that is scored needs one per example")
        with torch.inference_mode():
            answers = _answers(model, asked, examples, context.step.inputs, BATCH_SIZE, context)
        if accelerator.is_main_process:
            write_text(context.folder / file, "".join(generations.as_line(answer) + "\n" for answer in answers))
        accelerator.wait_for_everyone()


def answers_files(recipe: Recipe, step: str) -> dict[str, Asked]:
    """`generations.jsonl`, of the texts of each example, best first, or `predictions.jsonl`; and `likelihoods.jsonl`,
    of its references, if a metric judges them -> what is asked for."""
    objective, kind = recipe.predicts(step) or (GENERATOR, "text")
    files: dict[str, Asked] = {generations.PREDICTIONS: objective}
    if kind == "text":
        files = {generations.GENERATIONS: recipe.decoding_of(step)}
    if any(LIKELIHOOD in config.judges for config in recipe.judging(step).values()):
        files[generations.LIKELIHOODS] = likelihoods
    return files


def read_answers(recipe: Recipe, step: str, folder: Path) -> list[Generation] | list[Prediction]:
    """The best text, or the prediction, of each example in a step's folder. Raises RunError."""
    if recipe.makes_texts(step):
        return [texts[0] for texts in generations.read(folder)]
    return generations.read_predictions(folder)
