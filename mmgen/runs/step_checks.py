"""Checks before training: examples without input or target, patterns of parameters, validation data; tries inputs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import torch

from ..data.datasets import Datasets
from ..data.part_checks import check_reads
from ..data.seeds import resolve
from ..errors import DataError
from ..model import EMBEDDERS, Model
from ..parts import Reader
from ..recipe.tables import Recipe
from ..tensors import Example
from ..training.optimizer import check_patterns

TRIED_EXAMPLES = 4  # examples with which each input is tried


def check_examples(
    place: str,
    remedy: str,
    reader: Reader,
    fields: Sequence[str],
    examples: Sequence[Example],
    chunk: Sequence[Example],
) -> None:
    """Raises DataError for examples of the chunk without a value that a reader needs from these fields. The message
    counts all examples."""
    try:
        _find_gap(place, remedy, reader, chunk, fields)
    except DataError:
        _find_gap(place, remedy, reader, examples, fields)
        raise


def _find_gap(place: str, remedy: str, reader: Reader, examples: Sequence[Example], fields: Sequence[str]) -> None:
    incomplete = [example for example in examples if any(example.lacks(field) for field in fields)]
    try:
        if incomplete:
            reader.read(resolve(incomplete[0]))  # a reader may not need the field
        reader.find_gaps(examples)
    except DataError as error:
        raise DataError(f"{place}: {error}{_how_many(incomplete, examples, remedy) if incomplete else ''}") from None


def check_targets(place: str, remedy: str, examples: Sequence[Example], chunk: Sequence[Example]) -> None:
    """Raises DataError for examples of the chunk without a target. The message counts all examples."""
    if any(not example.targets for example in chunk):
        incomplete = [example for example in examples if not example.targets]
        how_many = _how_many(incomplete, examples, remedy)
        raise DataError(f"{place}: example '{incomplete[0].id}' has no target{how_many}")


def _how_many(incomplete: Sequence[Example], examples: Sequence[Example], remedy: str) -> str:
    return f" ({len(incomplete)} of {len(examples)} examples); remove these examples, or remove {remedy}"


def check_training_patterns(name: str, recipe: Recipe, model: Model) -> None:
    """Raises DataError for a pattern in the step's training.freeze or training.learning_rates that matches no
    parameter. The model may lack inputs that the steps to run do not read; patterns of embedders are not checked
    then."""
    training, lacks_inputs = recipe.steps[name].training, len(model.inputs) < len(recipe.inputs)
    for key in ("freeze", "learning_rates"):
        patterns = getattr(training, key)
        place = () if patterns == getattr(recipe.training, key) else ("steps", name)
        checked = [p for p in patterns if not (lacks_inputs and p.startswith(("*", "?", "[", EMBEDDERS)))]
        check_patterns(model, checked, (*place, "training", key))


def check_validation(name: str, recipe: Recipe, datasets: Datasets) -> None:
    """Raises DataError if there is no validation split for early stopping, or none that a metric could score."""
    training = recipe.steps[name].training
    for key, examples in (
        ("early_stopping_patience", [source.validation for source in datasets.sources(name).values()]),
        ("metric_for_best_model", [datasets.validation_by(name)]),
    ):
        value, problem = getattr(training, key), ""
        if value is not None and not any(map(len, examples)):
            problem = f"step '{name}' has no validation examples; set data.validation_split, or remove this key"
        elif value is not None and key == "metric_for_best_model" and not recipe.judging(name):
            problem = f"no metric scores step '{name}'; add one, or remove this key"
        if problem:
            place = () if value == getattr(recipe.training, key) else ("steps", name)
            error = DataError(problem)
            error.about = (*place, "training", key)
            raise error


def try_inputs(recipe: Recipe, step: str, model: Model, datasets: Datasets) -> None:
    """Raises PluginError for an input of a step that reads differently twice, or depends on padding."""
    for source in datasets.sources(step).values():
        for name in recipe.required_inputs(source.inputs, source.objectives):
            _try_input(name, model, list(islice(source.examples, TRIED_EXAMPLES)))


def _try_input(name: str, model: Model, examples: Sequence[Example]) -> None:
    """Check an input with some examples. The input's mode and the random state are restored."""
    embedder = model.embedders[name]
    training = embedder.training
    with torch.random.fork_rng(), torch.no_grad():
        resolved = [resolve(example) for example in examples]
        check_reads(name, embedder.eval(), resolved, model.backbone.input_size)
    embedder.train(training)
