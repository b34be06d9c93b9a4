"""Gaps: what a later step would stumble over, told before anything is learnt."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..data.checked import check_reads
from ..data.datasets import Datasets
from ..data.seeds import resolve
from ..errors import DataError, RunError
from ..model import Model
from ..parts import Reader
from ..recipe.tables import GENERATOR, Recipe, Step
from ..tensors import Example
from ..training.optimizer import frozen

LOOKED_AT = 4  # examples that every input is tried with


def find_gaps(recipe: Recipe, model: Model, datasets: Datasets, steps: Sequence[str]) -> None:
    """Raises DataError for examples that lack an input, images without features, examples to write about without a
    target; PluginError for an input whose reads differ, or whose padding counts; RunError for a pattern of parameters
    to freeze that matches none."""
    for name in steps:
        step = recipe.steps[name]
        _check_frozen(name, step, model)
        sources = datasets.sources(name)
        for source in sources.values():
            place, whose = f"step '{name}'", "the step's"
            if len(sources) > 1:
                place, whose = f"step '{name}', data '{source.name}'", "its"
            for examples in (source.examples, source.validation):
                for wanted in recipe.required_inputs(source.inputs, source.objectives):
                    reader, fields = model.embedders[wanted].reader, recipe.inputs[wanted].fields
                    _find_gap(place, f"'{wanted}' out of {whose} inputs", reader, examples, fields)
                if GENERATOR in source.objectives:
                    _find_targets(place, f"'{GENERATOR}' out of {whose} objectives", examples)
            for wanted in recipe.required_inputs(source.inputs, source.objectives):
                _look(wanted, model, source.examples[:LOOKED_AT])
        for wanted in recipe.required_inputs(step.inputs, step.objectives) if step.evaluate else ():
            reader, fields = model.embedders[wanted].reader, recipe.inputs[wanted].fields
            mend = f"'{wanted}' out of the step's inputs"
            _find_gap(f"step '{name}'", mend, reader, datasets.scored_by(name), fields)


def _find_gap(place: str, mend: str, reader: Reader, examples: Sequence[Example], fields: Sequence[str]) -> None:
    """Raises DataError where examples lack what a reader reads of these fields."""
    lacking = [example for example in examples if any(example.lacks(field) for field in fields)]
    try:
        if lacking:
            reader.read(resolve(lacking[0]))  # a reader may do without
        reader.find_gaps(examples)
    except DataError as error:
        raise DataError(f"{place}: {error}{_how_many(lacking, examples, mend) if lacking else ''}") from None


def _find_targets(place: str, mend: str, examples: Sequence[Example]) -> None:
    """Raises DataError where examples have nothing to write."""
    if lacking := [example for example in examples if not example.targets]:
        how_many = _how_many(lacking, examples, mend)
        raise DataError(f"{place}: example '{lacking[0].id}' has no target to learn from{how_many}")


def _how_many(lacking: Sequence[Example], examples: Sequence[Example], mend: str) -> str:
    are = "is" if len(lacking) == 1 else "are"
    count = f"{len(lacking)} of {len(examples)} examples {are} like that"
    return f" ({count}); leave such examples out, or take {mend}"


def _check_frozen(name: str, step: Step, model: Model) -> None:
    """Raises RunError for a pattern of the step's training.freeze that no parameter matches."""
    try:
        frozen(model, step.training.freeze)
    except RunError as error:
        raise RunError(f"step '{name}': {error}") from None


def _look(name: str, model: Model, examples: Sequence[Example]) -> None:
    """Try an input with some examples; leaves its mode and the random numbers as they were."""
    embedder = model.embedders[name]
    training = embedder.training
    with torch.random.fork_rng(), torch.no_grad():
        resolved = [resolve(example) for example in examples]
        check_reads(name, embedder.eval(), resolved, model.backbone.input_size)
    embedder.train(training)
