"""Answers of a model, texts or predictions: for examples in Python, for a step's split, and while the step trains."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object

from ..data.collate import Collator, by_length
from ..data.part_checks import predict_with, write_texts
from ..data.seeds import resolve, seeded
from ..decoding import DecodingConfig
from ..errors import DataError
from ..examples import Example, Generation, Prediction
from ..files import write_text
from ..model import Model
from ..oom import ADVICE_FEWER_TEXTS, ADVICE_SMALLER, OomRetry
from ..parts import Metric, Picture, ShownExample
from ..progress import Progress
from ..prompts import prompts_of
from ..recipe.tables import GENERATOR, Recipe
from ..storage import generations, predictions
from ..training.context import StepContext
from ..training.precision import precision
from .score import score_predictions


class _Task:
    """What is asked of a model that reads these inputs: texts, by decoding options, or the predictions of an objective.
    Called with examples, it gives an answer for each.

    doing, unit, advice  words for progress and errors: "writing", "texts", what to do if memory runs out
    """

    def __init__(self, model: Model, inputs: Sequence[str], asked: DecodingConfig | str) -> None:
        self.model, self.asked = model, asked
        if isinstance(asked, str):
            self.doing, self.unit, self.advice = "predicting", "examples", ADVICE_SMALLER
            objectives = [asked]
        else:
            self.doing, self.unit, self.advice = "writing", "texts", ADVICE_FEWER_TEXTS
            objectives = [GENERATOR] * model.generator.reader.reads_prompts
        self.collate = Collator(model, inputs, objectives, predicting=True)

    def __call__(self, examples: Sequence[Example]) -> list[Any]:
        batch = self.collate(examples).to(self.model.device)
        if isinstance(self.asked, str):
            return predict_with(self.model, self.asked, batch)
        return write_texts(self.model, batch, self.asked, examples)


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
    return _answers(_Task(model, inputs or model.inputs, options or model.decoding), examples, batch_size)


def predict(
    model: Model,
    examples: Sequence[Example],
    objective: str,
    inputs: Sequence[str] | None = None,
    batch_size: int = 32,
) -> list[Prediction]:
    """One prediction for each example. `objective`: the objective that predicts; `inputs`, the mode and the memory: see
    `generate`."""
    return _answers(_Task(model, inputs or model.inputs, objective), examples, batch_size)


@torch.inference_mode()
def _answers(task: _Task, examples: Sequence[Example], batch_size: int) -> list[Any]:
    if batch_size < 1:
        raise DataError(f"batch_size must be at least 1, but is {batch_size}")
    retry, training, results = OomRetry(task.doing, task.advice), task.model.training, dict[int, Any]()
    task.model.eval()
    try:
        for batch in by_length(task.collate.slots(examples), batch_size):
            pieces = retry.over([examples[index] for index in batch], task)
            results |= zip(batch, (answer for _, answers in pieces for answer in answers), strict=True)
        return [results[index] for index in range(len(examples))]
    finally:
        task.model.train(training)


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
    return "generations.jsonl" if recipe.makes_texts(step) else predictions.FILE


def read_answers(recipe: Recipe, step: str, folder: Path) -> list[Generation] | list[Prediction]:
    """The best text, or the prediction, of each example in a step's folder. Raises RunError."""
    if recipe.makes_texts(step):
        return [texts[0] for texts in generations.read(folder)]
    predicts = recipe.predicts(step)
    return predictions.read(folder, predicts and predicts[1])


def split_answers(
    model: Model, context: StepContext, recipe: Recipe, examples: Sequence[Example], batch_size: int = 32
) -> list[Any]:
    """What a step's model, in eval mode, answers for examples: the texts of each, best first, or its prediction. All
    processes call it, and the first gets all answers. Each batch has its own random seed, so the number of processes
    does not change samples. torch's random state is as before afterwards.

    A batch that runs out of memory is split in halves, separately in each process. Greedy search and beam search find
    the same texts then; samples differ, since each piece has its own seed (the same splits give the same samples)."""
    accelerator, step, results = context.accelerator, context.step, list[tuple[int, Any]]()
    objective, kind = recipe.predicts(context.name) or (GENERATOR, "text")
    if kind == "text":
        check_prompts(examples)
    task = _Task(model, step.inputs, recipe.decoding_of(context.name) if kind == "text" else objective)
    retry = context.retry(task.doing, task.advice, named=lambda index: examples[index].id)

    def answer(number: int, batch: Sequence[int], piece: Sequence[int]) -> list[Any]:
        cut = piece if len(piece) < len(batch) else ()  # the seed of a full batch does not depend on pieces
        with (
            seeded(context.seed, context.name, "write", number, *cut),
            precision(step.training.precision, accelerator.device),
        ):
            return task([examples[index] for index in piece])

    with context.progress.task(f"{context.name}: {task.doing}", len(examples), task.unit) as advance:
        for number, batch in enumerate(by_length(task.collate.slots(examples), batch_size)):
            if number % accelerator.num_processes == accelerator.process_index:
                for piece, answers in retry.over(batch, partial(answer, number, batch)):
                    results += zip(piece, answers, strict=True)
            advance(len(batch))
    if accelerator.num_processes > 1:
        results = gather_object(results)
    return [result for _, result in sorted(results, key=itemgetter(0))]


def check_prompts(examples: Sequence[Example]) -> None:
    """Raises DataError for an example with several prompts: one text is scored, but each prompt would have its own."""
    for example in examples:
        if len(prompts := {*prompts_of(example)}) > 1:
            raise DataError(
                f"example '{example.id}' has {len(prompts)} different prompts; a split that is scored must have one "
                "example per prompt"
            )


def best_answers(
    recipe: Recipe, context: StepContext, examples: Sequence[Example], model: Model
) -> list[Generation] | list[Prediction]:
    """The best text or the prediction of a step that trains, as for its test examples, in the first process. All
    processes call it."""
    silent = replace(context, progress=Progress())  # training has the progress bar
    answers = split_answers(model, silent, recipe, examples)
    return [answer[0] if isinstance(answer, list) else answer for answer in answers]


def shown_examples(
    recipe: Recipe,
    context: StepContext,
    examples: Sequence[Example],
    pictures: Mapping[str, Picture],
    model: Model,
) -> list[ShownExample]:
    """The validation examples that callbacks show, with what a step that trains answers now."""
    answers = best_answers(recipe, context, examples, model)
    shown = []
    for example, answer in zip(map(resolve, examples), answers, strict=False):  # other processes have no answers
        keys = [key for field in example.inputs for key in example.shown(field) if isinstance(key, str)]
        shown.append(ShownExample(example, answer, tuple(pictures[key] for key in keys if key in pictures)))
    return shown


def validation_scores(
    recipe: Recipe, context: StepContext, examples: Sequence[Example], metrics: Mapping[str, Metric], model: Model
) -> Mapping[str, float | None]:
    """The scores by column of a step that trains, on validation examples as on its test examples. All processes call
    it; the scores are in the first."""
    answers = best_answers(recipe, context, examples, model)
    if not context.accelerator.is_main_process:
        return {}
    file = context.folder / "log.jsonl"
    return score_predictions(context.name, answers, examples, metrics, file, Progress()).values
