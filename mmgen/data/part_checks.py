"""Calls parts for texts, exactly n different ones if required, and for predictions; checks what would spoil results
silently: ids, counts, scores of NaN.

A mistake raises PluginError, whose one line names the part. The rest of a part's contract is checked by its suite in
`mmgen.testing`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import torch

from ..decoding import Decoding, DecodingConfig
from ..errors import DataError, PluginError
from ..examples import Example, Generation, Prediction, Scores
from ..parts import Backbone
from ..prompts import PROMPT_COUNTS, with_prompts
from ..tensors import Batch

if TYPE_CHECKING:
    from ..model import Model

Pairs = frozenset[int | tuple[int, int]]  # tokens of a text, and its pairs of neighbours


def write_texts(
    model: Model, batch: Batch, options: DecodingConfig, examples: Sequence[Example], seeds: Sequence[int] = ()
) -> list[list[Generation]]:
    """The generator's texts for a batch of these examples. `seeds`: of the examples, for options that sample. Raises
    PluginError, and DataError if there are too few different texts."""
    generator, counts = model.generator, batch.label(PROMPT_COUNTS)
    if seeds:
        batch = replace(batch, seeds=torch.tensor(seeds, device=model.device))
    write = partial(generator.generate, model, batch)
    if isinstance(options, Decoding) and options.candidates:
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


def choose_different(
    write: Callable[[Decoding], list[list[Generation]]],
    batch: Batch,
    options: Decoding,
    backbone: Backbone,
) -> list[list[Generation]]:
    """Exactly `options.num_return_sequences` different texts per example, or per prompt of it, in the order in which
    they are chosen from many.

    write  the texts of a search for every example; those of a prompt are next to one another

    The candidates are the texts of a beam search; of a wider one, if there are too few. A text is chosen by maximal
    marginal relevance (Carbonell and Goldstein, 1998): `difference` times its distance from the nearest text that is
    chosen already, and the rest times the mean probability of its tokens. The distance is 1 less the Dice overlap of
    two texts' tokens and pairs of neighbours, from 0 to 1. Texts that are equal but for case count as one. Raises
    DataError if there are too few.
    """
    counts, required = batch.label(PROMPT_COUNTS), options.num_return_sequences
    queries = [row for row in range(len(batch.ids)) for _ in range(1 if counts is None else int(counts[row]))]
    pools: list[dict[str, Generation]] = []
    for candidates in options.for_candidates():
        texts = [text for row in write(candidates) for text in row]
        pools = [{} for _ in queries]
        for place, text in enumerate(texts):
            pools[place * len(queries) // len(texts)].setdefault(text.text.casefold(), text)
        if all(len(pool) >= required for pool in pools):
            break
    chosen: list[list[Generation]] = [[] for _ in batch.ids]
    for row, pool in zip(queries, pools, strict=True):
        if len(pool) < required:
            raise DataError(
                f"'{batch.ids[row]}': {required} different texts are required, but beam search ends in {len(pool)}; "
                "ask for fewer, or raise decoding.candidates"
            )
        left = [(text, token_pairs(text.tokens, backbone.end_id)) for text in pool.values()]
        near = list[Pairs]()
        for _ in range(required):
            values = [
                options.difference * min((distance(pairs, other) for other in near), default=1.0)
                + (1 - options.difference) * math.exp(text.score)
                for text, pairs in left
            ]
            text, pairs = left.pop(values.index(max(values)))
            chosen[row].append(text)
            near.append(pairs)
    return chosen


def token_pairs(tokens: Sequence[int], end_id: int) -> Pairs:
    """The tokens of a text without its end, and its pairs of neighbours."""
    words = [token for token in tokens if token != end_id]
    return frozenset([*words, *pairwise(words)])


def distance(first: Pairs, second: Pairs) -> float:
    """1 less the Dice overlap of two sets of `token_pairs`."""
    return 1 - 2 * len(first & second) / max(1, len(first) + len(second))
