"""Calls parts for texts, predictions and scores, and checks what would spoil results silently: ids, counts, NaN.

A mistake raises PluginError, whose one line names the part. The rest of a part's contract is checked by its suite in
`mmgen.testing`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..decoding import Decoding, DecodingConfig
from ..errors import PluginError
from ..examples import Example, Generation, Prediction, Scores
from ..parts import Metric
from ..prompts import AVOID, PROMPT_COUNTS, with_prompts
from ..tensors import Batch
from .different_texts import choose_different

if TYPE_CHECKING:
    from ..model import Model


def write_texts(
    model: Model, batch: Batch, options: DecodingConfig, examples: Sequence[Example]
) -> list[list[Generation]]:
    """The generator's texts for a batch of these examples. Raises PluginError, and DataError if there are too few
    different texts."""

    def generate(searched: DecodingConfig) -> list[list[Generation]]:
        return model.generator.generate(model, batch, searched)

    if isinstance(options, Decoding) and (options.candidates or batch.label(AVOID) is not None):
        texts = choose_different(generate, batch, options, model.backbone)
    else:
        texts = generate(options)
    prompts = [1] * len(batch.ids) if (counts := batch.label(PROMPT_COUNTS)) is None else counts.tolist()
    if problem := answers_problem(texts, batch.ids, [options.texts * count for count in prompts]):
        raise PluginError(f"{type(model.generator).__name__}.generate returns {problem}")
    kind = model.generator.score_kind
    texts = [[text if text.score_kind == kind else replace(text, score_kind=kind) for text in row] for row in texts]
    if counts is None:
        return texts
    return [with_prompts(row, example) for row, example in zip(texts, examples, strict=True)]


def predict_with(model: Model, name: str, batch: Batch) -> list[Prediction]:
    """The predictions of an objective for a batch. Raises PluginError."""
    objective = model.objective(name)
    predictions = list(objective.predict(model, batch, batch.targets[name]))
    if problem := answers_problem([[prediction] for prediction in predictions], batch.ids, [1] * len(batch.ids)):
        raise PluginError(f"{name} ({type(objective).__name__}): predict returns {problem}")
    return predictions


def answers_problem(
    answers: Sequence[Sequence[Generation | Prediction]], ids: Sequence[str], counts: Sequence[int]
) -> str:
    """What is wrong with answers to the examples with these ids, in order: another number than `counts`, or another
    id. Empty if nothing is."""
    if len(answers) != len(ids):
        return f"answers to {len(answers)} examples, not to {len(ids)}"
    for id_, count, row in zip(ids, counts, answers, strict=True):
        if len(row) != count:
            return f"{len(row)} texts for '{id_}'; expected {count}"
        for answer in row:
            if answer.id != id_:
                return f"an answer with the id '{answer.id}' for '{id_}'"
    return ""


def score_with(
    name: str, metric: Metric, predictions: Sequence[Generation] | Sequence[Prediction], examples: Sequence[Example]
) -> Scores:
    """The scores of a metric for the predictions of these examples, in the same order. Raises PluginError."""
    return _checked(metric.score(predictions, examples), len(examples), f"metrics.{name} ({type(metric).__name__})")


def references_of(name: str, metric: Metric, examples: Sequence[Example]) -> Scores | None:
    """The scores of a metric for the references of these examples and for chance; None if the metric has neither.
    Raises PluginError."""
    scores = metric.references(examples)
    return None if scores is None else _checked(scores, len(examples), f"metrics.{name} ({type(metric).__name__})")


def _checked(scores: Scores, count: int, part: str) -> Scores:
    """The scores of this number of examples. Raises PluginError for another number, or a value that is not finite."""
    if not isinstance(scores, Scores):
        raise PluginError(f"{part}: returns {scores!r:.60}; expected a mmgen.examples.Scores")
    for name, values in scores.per_example.items():
        if len(values) != count:
            raise PluginError(f"{part}: {name} has {len(values)} values for {count} examples")
    for name, values in [*scores.per_example.items(), *((name, [value]) for name, value in scores.values.items())]:
        if bad := [value for value in values if value is not None and not math.isfinite(value)]:
            raise PluginError(f"{part}: {name} is {bad[0]}; values must be finite numbers, or None")
    return scores
