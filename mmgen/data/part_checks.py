"""Calls parts and checks what they give: examples, equal reads, targets, texts, predictions, scores; names the part.

A mistake raises PluginError, whose one line names the part. Runs and the suites of `mmgen.testing` call the same
checks. (Segments are checked in `mmgen.sequence`, losses in `mmgen.objectives`.)"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, cast

from torch import Tensor

from ..decoding import Decoding, DecodingConfig
from ..errors import PluginError
from ..objectives import Generator, Objective, TargetReader
from ..parts import Embedder, Metric, Reader
from ..prompts import AVOID, PROMPT_COUNTS, with_prompts
from ..recipe.tables import GENERATOR
from ..registry import Qualified, part_calls
from ..sequence import segment_problem
from ..tensors import LOG_PROBABILITY, All, Batch, Example, Generation, Prediction, ResolvedExample, Scores, Targets
from .different_texts import choose_different

if TYPE_CHECKING:
    from ..model import Model


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


def tensors_problem(what: str, tensors: object) -> str:
    """What is wrong with the type of what a part gives as named tensors; empty if it is right. `what`: the start of the
    message, "published returns"."""
    if not isinstance(tensors, Mapping):
        return f"{what} a {type(tensors).__name__}, not a mapping of names to tensors"
    if wrong_name := next((name for name, tensor in tensors.items() if not isinstance(tensor, Tensor)), None):
        return f"{what} '{wrong_name}' as a {type(tensors[wrong_name]).__name__}, not as a tensor"
    return ""


def check_texts(
    texts: Sequence[Sequence[Generation]],
    ids: Sequence[str],
    num_texts: int,
    generator: Generator,
    prompts: Sequence[int] = (),
) -> list[list[Generation]]:
    """The texts of a generator for the examples with these ids: `num_texts` per example, or for each of its `prompts`.
    Raises PluginError."""
    problem = ""
    if not isinstance(texts, Sequence) or not all(isinstance(candidates, Sequence) for candidates in texts):
        texts, problem = [], f"{texts!r:.60}; expected a list of texts for each example"
    elif len(texts) != len(ids):
        problem = f"{len(texts)} lists of texts for {len(ids)} examples"
    for id_, count, candidates in zip(ids, prompts or [1] * len(ids), texts, strict=False):
        if len(candidates) != num_texts * count:
            several = f", and it has {count} prompts" if count > 1 else ""
            problem = problem or f"{len(candidates)} texts for '{id_}'; num_return_sequences is {num_texts}{several}"
        for text in candidates:
            if not isinstance(text, Generation):
                problem = problem or f"{text!r:.60} for '{id_}'; expected a mmgen.tensors.Generation"
            elif text.id != id_:
                problem = problem or f"a text with the id '{text.id}' for '{id_}'"
            elif not _is_finite(text.score):
                wrong = f"a text for '{id_}' whose score is {text.score!r:.60}; a score must be a"
                problem = problem or f"{wrong} {_scores_of(generator)}{_cause(text.score)}"
    if problem:
        raise PluginError(f"{Qualified('generator', 'generator', generator)}: generate returns {problem}")
    kind = generator.score_kind
    return [[text if text.score_kind == kind else replace(text, score_kind=kind) for text in row] for row in texts]


def write_texts(
    model: Model, batch: Batch, options: DecodingConfig, examples: Sequence[Example]
) -> list[list[Generation]]:
    """The generator's texts for a batch of these examples, checked. Raises PluginError, and DataError if there are too
    few different texts."""

    def generate(searched: DecodingConfig) -> list[list[Generation]]:
        with part_calls(Qualified("generator", "generator", model.generator), "generate"):
            texts: list[list[Generation]] = model.generator.generate(model, batch, searched)
        return texts

    if isinstance(options, Decoding) and (options.candidates or batch.label(AVOID) is not None):
        texts = choose_different(generate, batch, options, model.backbone)
    else:
        texts = generate(options)
    prompts = [] if (counts := batch.label(PROMPT_COUNTS)) is None else counts.tolist()
    checked = check_texts(texts, batch.ids, options.texts, model.generator, prompts)
    return [with_prompts(row, example) for row, example in zip(checked, examples, strict=True)] if prompts else checked


def predict_with(model: Model, name: str, batch: Batch) -> list[Prediction]:
    """The predictions of an objective for a batch, checked. Raises PluginError."""
    objective = model.objective(name)
    with part_calls(Qualified(name, "objective", objective), "predict"):
        predictions = objective.predict(model, batch, batch.targets[name])
    return check_predictions(predictions, batch.ids, name, objective)


def _scores_of(generator: Generator) -> str:
    return "mean log-probability" if generator.score_kind == LOG_PROBABILITY else "confidence from 0 to 1"


def check_targets(targets: Targets, name: str, reader: TargetReader, predicting: bool) -> Targets:
    """The `Targets` of an objective's reader for a batch, with a count for each of its losses, unless `predicting`. A
    loss without a count would silently be left out. Raises PluginError."""
    problem = ""
    if not isinstance(targets, Targets):
        problem = f"returns {targets!r:.60}; expected a mmgen.tensors.Targets"
    elif wrong_labels := tensors_problem("returns labels", targets.labels):
        problem = wrong_labels
    elif not predicting and set(targets.counts) != set(reader.losses):
        counted, losses = (", ".join(map(repr, names)) for names in (targets.counts, reader.losses))
        problem = f"counts {counted or 'nothing'}; its losses are {losses}"
    elif bad := [loss for loss, count in targets.counts.items() if not isinstance(count, Real) or not count >= 0]:
        problem = f"counts {targets.counts[bad[0]]!r:.60} for '{bad[0]}'; a count must be a number of at least 0"
    if problem:
        kind = "generator" if name == GENERATOR else "objective"
        raise PluginError(f"{Qualified(name, kind, reader)}: {'ask' if predicting else 'collate'} {problem}")
    return targets


def check_predictions(
    predictions: Sequence[Prediction], ids: Sequence[str], name: str, objective: Objective
) -> list[Prediction]:
    """The predictions of an objective for the examples with these ids. Raises PluginError."""
    place = Qualified(name, "objective", objective)
    if not isinstance(predictions, Sequence) or len(predictions) != len(ids):
        result = len(predictions) if isinstance(predictions, Sequence) else predictions
        raise PluginError(f"{place}: predict returns {result!r:.60} for {len(ids)} examples")
    for prediction, id_ in zip(predictions, ids, strict=True):
        if not isinstance(prediction, Prediction):
            raise PluginError(
                f"{place}: predict returns {prediction!r:.60} for '{id_}'; expected a mmgen.tensors.Prediction"
            )
        if prediction.id != id_:
            raise PluginError(f"{place}: predict returns a prediction with the id '{prediction.id}' for '{id_}'")
        if not _is_finite(prediction.score):
            raise PluginError(
                f"{place}: predict returns the score {prediction.score!r:.60} for '{id_}'; a score must be a finite "
                f"number{_cause(prediction.score)}"
            )
        try:
            json.dumps(prediction.value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise PluginError(f"{place}: predict returns a value for '{id_}' that is not JSON: {error}") from None
    return list(predictions)


def score_with(
    name: str, metric: Metric, predictions: Sequence[Generation] | Sequence[Prediction], examples: Sequence[Example]
) -> Scores:
    """The scores of a metric for the predictions of these examples, in the same order. Raises PluginError."""
    place = Qualified(f"metrics.{name}", "metric", metric)
    with part_calls(place, "score"):
        scores = metric.score(predictions, examples)
    if problem := _scores_problem(scores, len(examples), "score"):
        raise PluginError(f"{place}: {problem}")
    return scores


def references_of(name: str, metric: Metric, examples: Sequence[Example]) -> Scores | None:
    """The scores of a metric for the references of these examples and for chance; None if the metric has neither.
    Raises PluginError."""
    place = Qualified(f"metrics.{name}", "metric", metric)
    with part_calls(place, "references"):
        scores = metric.references(examples)
    if scores is not None and (problem := _scores_problem(scores, len(examples), "references")):
        raise PluginError(f"{place}: {problem}")
    return scores


def _scores_problem(scores: Scores, count: int, method: str) -> str:
    if not isinstance(scores, Scores):
        none = ", or None" if method == "references" else ""
        return f"{method} returns {scores!r:.60}; expected a mmgen.tensors.Scores{none}"
    for field in ("values", "per_example"):
        if not isinstance(getattr(scores, field), Mapping):
            return f"{method} returns {field} {getattr(scores, field)!r:.60}; expected a dict"
    if not isinstance(scores.notes, tuple | list) or not all(isinstance(note, str) for note in scores.notes):
        return f"{method} returns notes {scores.notes!r:.60}; expected a tuple of texts, ('...',)"
    for name in (*scores.values, *scores.per_example):
        if not isinstance(name, str):
            return f"{method} returns a score named {name!r:.60}; names must be texts"
    for name, value in scores.values.items():
        if value is not None and not _is_finite(value):
            return f"{name} is {value!r:.60}; values must be finite numbers, or None with a note"
    for name, values in scores.per_example.items():
        if not isinstance(values, Collection) or isinstance(values, str | Mapping):
            return f"{name} has {values!r:.60} for its examples; expected a list of numbers"
        if len(values) != count:
            return f"{name} has {len(values)} values for {count} examples"
        if (bad := next((value for value in values if value is not None and not _is_finite(value)), None)) is not None:
            return f"{name} of an example is {bad!r:.60}; values must be finite numbers, or None"
    return ""


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _cause(score: Any) -> str:
    """The likeliest cause of a score that is NaN, for errors."""
    is_nan = isinstance(score, float) and math.isnan(score)
    return "; the weights of the model may be damaged: far too large weights give nan" if is_nan else ""


def check_reads(name: str, embedder: Embedder, examples: Sequence[ResolvedExample], width: int) -> None:
    """Checks an input before training: two reads of an example are equal, `forward` gives a segment of the backbone's
    width, and an example has as many slots alone as in a batch. Raises PluginError; DataError if an example cannot be
    read."""
    reader, place = embedder.reader, Qualified(f"input '{name}'", "embedder", embedder)
    collate = partial(collate_items, reader, place)
    with part_calls(place, "read"):
        items = [reader.read(example) for example in examples]
        repeats = [reader.read(example) for example in examples]
    for example, item, repeated in zip(examples, items, repeats, strict=True):
        if changed := _changed_tensors(collate([item]), collate([repeated])):
            raise PluginError(
                f"{place}: example '{example.id}' read twice gives different {changed}; a read must depend "
                "only on the example, or results depend on the number of loader workers"
            )
    batch_counts = _count_slots(embedder, collate(items), len(items), place, width)
    for example, item, count in zip(examples, items, batch_counts, strict=True):
        (alone,) = _count_slots(embedder, collate([item]), 1, place, width)
        if alone != count:
            raise PluginError(
                f"{place}: example '{example.id}' has {alone} slots alone and {count} in a batch; mask the padding"
            )


def collate_items(reader: Reader, place: Qualified, items: Sequence[Any]) -> Mapping[str, Tensor]:
    """What the reader of an input collates. Raises PluginError, also for anything but tensors."""
    with part_calls(place, "collate"):
        collated = reader.collate(items)
    if problem := tensors_problem("collate returns", collated):
        raise PluginError(f"{place}: {problem}")
    return collated


def _changed_tensors(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> str:
    """Names of the tensors that differ between two reads of an example."""
    return ", ".join(
        name for name in before if before[name].shape != after[name].shape or not (before[name] == after[name]).all()
    )


def _count_slots(
    embedder: Embedder, collated: Mapping[str, Tensor], rows: int, place: Qualified, width: int
) -> list[int]:
    """Real slots of every row. Raises PluginError unless `forward` gives a segment for a backbone of this width."""
    device = next((parameter.device for parameter in embedder.parameters()), None)
    segment = embedder(**{name: value if device is None else value.to(device) for name, value in collated.items()})
    if problem := segment_problem(segment, rows, width):
        raise PluginError(f"{place}: {problem}")
    return cast("list[int]", segment.mask.sum(1).tolist())
