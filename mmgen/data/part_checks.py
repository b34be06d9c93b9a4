"""Calls parts for texts and predictions, and checks what would spoil results silently: ids, counts, scores of NaN.

A mistake raises PluginError, whose one line names the part. The rest of a part's contract is checked by its suite in
`mmgen.testing`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ..decoding import Decoding, DecodingConfig
from ..errors import PluginError
from ..examples import Example, Generation, Prediction, Scores
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
    generator, counts = model.generator, batch.label(PROMPT_COUNTS)
    write = partial(generator.generate, model, batch)
    if isinstance(options, Decoding) and (options.candidates or batch.label(AVOID) is not None):
        texts = choose_different(write, batch, options, model.backbone)
    else:
        texts = write(options)
    prompts = [1] * len(batch.ids) if counts is None else counts.tolist()
    expected = [[id_] * (options.texts * count) for id_, count in zip(batch.ids, prompts, strict=True)]
    _check_ids(f"{type(generator).__name__}.generate", texts, expected)
    texts = [[replace(text, score_kind=generator.score_kind) for text in row] for row in texts]
    return texts if counts is None else [with_prompts(*pair) for pair in zip(texts, examples, strict=True)]


def predict_with(model: Model, name: str, batch: Batch) -> list[Prediction]:
    """The predictions of an objective for a batch. Raises PluginError."""
    objective = model.objective(name)
    predictions = list(objective.predict(model, batch, batch.targets[name]))
    part = f"{name} ({type(objective).__name__}): predict"
    _check_ids(part, [[prediction] for prediction in predictions], [[id_] for id_ in batch.ids])
    return predictions


def _check_ids(part: str, answers: Sequence[Sequence[Generation | Prediction]], expected: list[list[str]]) -> None:
    """Raises PluginError if a part answers other examples than it is to, or another number of times."""
    if (ids := [[answer.id for answer in row] for row in answers]) != expected:
        raise PluginError(f"{part} returns answers to {ids!s:.200}; expected {expected!s:.200}")


def check_scores(metric: str, scores: Scores, examples: Sequence[Example]) -> Scores:
    """The scores that a metric gives these examples. Raises PluginError for another number of values, or a value that
    is not finite."""
    if not isinstance(scores, Scores):
        raise PluginError(f"metrics.{metric}: returns {scores!r:.60}; expected a mmgen.examples.Scores")
    for name, values in [*scores.per_example.items(), *((name, [value]) for name, value in scores.values.items())]:
        if name in scores.per_example and len(scores.per_example[name]) != len(examples):
            raise PluginError(f"metrics.{metric}: {name} has {len(values)} values for {len(examples)} examples")
        if bad := [value for value in values if value is not None and not math.isfinite(value)]:
            raise PluginError(f"metrics.{metric}: {name} is {bad[0]}; values must be finite numbers, or None")
    return scores
