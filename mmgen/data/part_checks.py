"""Calls parts for texts, predictions and scores, and checks what would spoil results silently: ids, counts, NaN.

A mistake raises PluginError, whose one line names the part. The rest of a part's contract is checked by its suite in
`mmgen.testing`."""

from __future__ import annotations

import contextlib
import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..configs import DatasetConfig
from ..decoding import Decoding, DecodingConfig
from ..errors import PluginError
from ..parts import Metric
from ..prompts import AVOID, PROMPT_COUNTS, with_prompts
from ..registry import Qualified, part_calls
from ..tensors import All, Batch, Example, Generation, Prediction, Scores
from .different_texts import choose_different
from .example_sizes import chunks

if TYPE_CHECKING:
    from ..model import Model


class Examples:
    """Checks the splits of one data set when they are first read: types of targets and inputs, and unique ids."""

    def __init__(self, config: DatasetConfig) -> None:
        self.place = Qualified("data", "dataset", type(config))
        self.checked: dict[str, Sequence[Example]] = {}
        self.hashes: dict[str, array[int]] = {}  # of the ids of a split

    def check(
        self, split: str, examples: Sequence[Example], visit: Callable[[Sequence[Example]], object] | None = None
    ) -> Sequence[Example]:
        """The same examples; `visit` is called with some at a time, when they are checked. Raises PluginError with the
        data set and the example."""
        if not (hasattr(examples, "__len__") and hasattr(examples, "__getitem__")):
            kind = type(examples).__name__
            raise PluginError(f"{self.place}: split '{split}' is a {kind}; a split must be a list of examples")
        if split in self.checked:
            return examples
        hashes = array("q")
        for chunk in chunks(examples):
            for example in chunk:
                if problem := example_problem(example):
                    raise self._example_error(split, example, problem)
            hashes.extend([hash(example.id) for example in chunk])
            if visit:
                visit(chunk)
        if has_duplicate_hash([*self.hashes.values(), hashes]):
            self._check_ids(split, examples)
        self.checked[split], self.hashes[split] = examples, hashes
        return examples

    def _check_ids(self, split: str, examples: Sequence[Example]) -> None:
        """Raises PluginError for the first example whose id another split has, or another example of this split."""
        owners = {example.id: name for name, checked in self.checked.items() for example in checked}
        for example in examples:
            if owner := owners.get(example.id):
                raise self._example_error(
                    split, example, f"the same id is in '{owner}'; give every example of all splits its own id"
                )
        seen: set[str] = set()
        for example in examples:
            if example.id in seen:
                raise self._example_error(
                    split, example, "duplicate id; ids must be unique because output files use them"
                )
            seen.add(example.id)

    def calls(self, split: str) -> contextlib.AbstractContextManager[None]:
        """Wraps the reading of a split: any error names the data set."""
        return part_calls(self.place, f"split('{split}')")

    def _example_error(self, split: str, example: Example, problem: str) -> PluginError:
        return PluginError(f"{self.place}: example '{getattr(example, 'id', example)}' of '{split}': {problem}")


def has_duplicate_hash(hashes: Sequence[array[int]]) -> bool:
    """Whether a number is in these arrays twice: then texts with these hashes may be equal."""
    numbers = np.concatenate([np.frombuffer(column, np.int64) for column in hashes])
    numbers.sort()
    return bool((numbers[1:] == numbers[:-1]).any())


def example_problem(example: Example) -> str:
    """What is wrong with the types of an example; empty if they are right."""
    if not isinstance(example, Example):
        return "is not a mmgen.tensors.Example"
    if not isinstance(example.id, str):
        return f"the id is {example.id!r:.60}; ids must be texts"
    if not isinstance(example.targets, tuple) or not all(isinstance(text, str) for text in example.targets):
        return f"targets are {example.targets!r:.60}, not a tuple of texts; write (text,) with the comma"
    if not isinstance(example.inputs, Mapping):
        return f"inputs are {example.inputs!r:.60}; inputs must be a dict"
    for field, value in example.inputs.items():
        if isinstance(value, list):
            return f"the alternatives of '{field}' are a list; write a tuple"
        shown = value.values if isinstance(value, All) else value if isinstance(value, tuple) else (value,)
        kinds = (str, tuple) if isinstance(value, All) else str  # All may contain positions in a text, as tuples
        if not isinstance(shown, tuple) or not all(isinstance(single, kinds) for single in shown):
            return f"'{field}' is {value!r:.60}; inputs must be keys, texts, tuples of alternatives, or All"
    return ""


def write_texts(
    model: Model, batch: Batch, options: DecodingConfig, examples: Sequence[Example]
) -> list[list[Generation]]:
    """The generator's texts for a batch of these examples. Raises PluginError, and DataError if there are too few
    different texts."""
    part = Qualified("generator", "generator", model.generator)

    def generate(searched: DecodingConfig) -> list[list[Generation]]:
        with part_calls(part, "generate"):
            texts: list[list[Generation]] = model.generator.generate(model, batch, searched)
        return texts

    if isinstance(options, Decoding) and (options.candidates or batch.label(AVOID) is not None):
        texts = choose_different(generate, batch, options, model.backbone)
    else:
        texts = generate(options)
    prompts = [1] * len(batch.ids) if (counts := batch.label(PROMPT_COUNTS)) is None else counts.tolist()
    with part_calls(part, "generate"):
        if problem := answers_problem(texts, batch.ids, [options.texts * count for count in prompts]):
            raise PluginError(f"{part}: generate returns {problem}")
        kind = model.generator.score_kind
        texts = [[text if text.score_kind == kind else replace(text, score_kind=kind) for text in row] for row in texts]
    if counts is None:
        return texts
    return [with_prompts(row, example) for row, example in zip(texts, examples, strict=True)]


def predict_with(model: Model, name: str, batch: Batch) -> list[Prediction]:
    """The predictions of an objective for a batch. Raises PluginError."""
    objective = model.objective(name)
    part = Qualified(name, "objective", objective)
    with part_calls(part, "predict"):
        predictions = list(objective.predict(model, batch, batch.targets[name]))
        if problem := answers_problem([[prediction] for prediction in predictions], batch.ids, [1] * len(batch.ids)):
            raise PluginError(f"{part}: predict returns {problem}")
    return predictions


def answers_problem(
    answers: Sequence[Sequence[Generation | Prediction]], ids: Sequence[str], counts: Sequence[int]
) -> str:
    """What is wrong with answers to the examples with these ids, in order: another number than `counts`, another id, or
    a score that is not finite. Empty if nothing is."""
    if len(answers) != len(ids):
        return f"answers to {len(answers)} examples, not to {len(ids)}"
    for id_, count, row in zip(ids, counts, answers, strict=True):
        if len(row) != count:
            return f"{len(row)} texts for '{id_}'; expected {count}"
        for answer in row:
            if answer.id != id_:
                return f"an answer with the id '{answer.id}' for '{id_}'"
            if not math.isfinite(answer.score):
                cause = "; the weights of the model may be damaged: far too large weights give nan"
                return f"the score {answer.score} for '{id_}'{cause * math.isnan(answer.score)}"
    return ""


def score_with(
    name: str, metric: Metric, predictions: Sequence[Generation] | Sequence[Prediction], examples: Sequence[Example]
) -> Scores:
    """The scores of a metric for the predictions of these examples, in the same order. Raises PluginError."""
    part = Qualified(f"metrics.{name}", "metric", metric)
    with part_calls(part, "score"):
        return _checked(metric.score(predictions, examples), len(examples), part)


def references_of(name: str, metric: Metric, examples: Sequence[Example]) -> Scores | None:
    """The scores of a metric for the references of these examples and for chance; None if the metric has neither.
    Raises PluginError."""
    part = Qualified(f"metrics.{name}", "metric", metric)
    with part_calls(part, "references"):
        scores = metric.references(examples)
        return None if scores is None else _checked(scores, len(examples), part)


def _checked(scores: Scores, count: int, part: Qualified) -> Scores:
    """The scores of this number of examples. Raises PluginError for another number, or a value that is not finite."""
    for name, values in scores.per_example.items():
        if len(values) != count:
            raise PluginError(f"{part}: {name} has {len(values)} values for {count} examples")
    for name, values in [*scores.per_example.items(), *((name, [value]) for name, value in scores.values.items())]:
        if bad := [value for value in values if value is not None and not math.isfinite(value)]:
            raise PluginError(f"{part}: {name} is {bad[0]}; values must be finite numbers, or None")
    return scores
