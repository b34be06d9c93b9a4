"""Answers of a model, texts or predictions: for examples in Python, for a step's split, and while the step trains."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
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

WORDS = {True: ("writing", "texts", ADVICE_FEWER_TEXTS), False: ("predicting", "examples", ADVICE_SMALLER)}


@dataclass
class _Walk:
    """Answers of a model for examples: texts, by decoding options, or the predictions of an objective. It goes through
    one process's share of the batches. `seed`: if there is one, every piece of a batch has a seed of its own."""

    model: Model
    inputs: Sequence[str]
    asked: DecodingConfig | str
    examples: Sequence[Example]
    batch_size: int
    share: tuple[int, int] = (0, 1)
    seed: tuple[object, ...] = ()
    precision: str = "fp32"

    @property
    def words(self) -> tuple[str, str, str]:
        """For progress and errors: the activity, its unit, and what to do if memory runs out."""
        return WORDS[not isinstance(self.asked, str)]

    def pieces(self, retry: OomRetry, advance: Callable[[int], object] = bool) -> list[tuple[int, Any]]:
        """(index, answer) of every example. `advance`: called with the number of examples that are done."""
        reads_prompts = isinstance(self.asked, str) or self.model.generator.reader.reads_prompts
        objectives = [self.asked if isinstance(self.asked, str) else GENERATOR] * reads_prompts
        collate, results = Collator(self.model, self.inputs, objectives, predicting=True), list[tuple[int, Any]]()
        for number, batch in enumerate(by_length(collate.slots(self.examples), self.batch_size)):
            if number % self.share[1] == self.share[0]:
                for piece, answers in retry.over(batch, partial(self._answer, collate, number, batch)):
                    results += zip(piece, answers, strict=True)
            advance(len(batch))
        return results

    def _answer(self, collate: Collator, number: int, batch: Sequence[int], piece: Sequence[int]) -> list[Any]:
        examples = [self.examples[index] for index in piece]
        cut = piece if len(piece) < len(batch) else ()  # the seed of a full batch does not depend on pieces
        seed = seeded(*self.seed, number, *cut) if self.seed else contextlib.nullcontext()
        with seed, precision(self.precision, self.model.device):
            collated = collate(examples).to(self.model.device)
            if isinstance(self.asked, str):
                return predict_with(self.model, self.asked, collated)
            return write_texts(self.model, collated, self.asked, examples)


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
    return _answers(_Walk(model, inputs or model.inputs, options or model.decoding, examples, batch_size))


def predict(
    model: Model, examples: Sequence[Example], objective: str, inputs: Sequence[str] | None = None, batch_size: int = 32
) -> list[Prediction]:
    """One prediction for each example. `objective`: the objective that predicts; `inputs`, the mode and the memory: see
    `generate`."""
    return _answers(_Walk(model, inputs or model.inputs, objective, examples, batch_size))


@torch.inference_mode()
def _answers(walk: _Walk) -> list[Any]:
    if walk.batch_size < 1:
        raise DataError(f"batch_size must be at least 1, but is {walk.batch_size}")
    training, (doing, _, advice) = walk.model.training, walk.words
    walk.model.eval()
    try:
        return _in_order(walk.pieces(OomRetry(doing, advice, named=lambda index: walk.examples[index].id)))
    finally:
        walk.model.train(training)


def _in_order(answers: list[tuple[int, Any]]) -> list[Any]:
    return [answer for _, answer in sorted(answers, key=itemgetter(0))]


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
    processes, step, name = context.accelerator, context.step, context.name
    objective, kind = recipe.predicts(name) or (GENERATOR, "text")
    if kind == "text":
        check_prompts(examples)

    asked, share = recipe.decoding_of(name) if kind == "text" else objective, processes.num_processes
    walk = _Walk(model, step.inputs, asked, examples, batch_size, (processes.process_index, share))
    walk.seed, walk.precision = (context.seed, name, "write"), step.training.precision
    doing, unit, advice = walk.words
    where, say = f"step '{name}', {doing}", context.progress.say
    retry = OomRetry(where, advice, named=lambda index: examples[index].id, say=say)
    with context.progress.task(f"{name}: {doing}", len(examples), unit) as advance:
        answers = walk.pieces(retry, advance)
    return _in_order(gather_object(answers) if share > 1 else answers)


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
