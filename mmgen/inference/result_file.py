"""Write a result file: predictions of a run or an export for a split, in the format that a task's evaluation reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..configs import MetricConfig
from ..data.datasets import Datasets, build_split, pictures_of
from ..errors import DataError, RunError, did_you_mean
from ..examples import Example
from ..features.extract import extract
from ..parts import Dataset
from ..progress import Progress
from ..reading.results import ResultFiles
from ..recipe.load import load as load_recipe
from ..recipe.load import with_settings
from ..recipe.tables import NoData, Recipe
from ..registry import Registry, installed
from ..storage.model_files import prepare_inputs
from ..storage.run_folder import RunFolder
from .answers import Answer
from .best_step import best_step, trained_steps
from .hub import find_folder
from .load import load
from .predictor import Predictor

OF_DATA = re.compile(r"(steps\.[^.=]+\.)?data\.")  # the beginning of a setting of the data


def result_file(
    where: str | Path,
    form: str,
    steps: Sequence[str] = (),
    split: str | None = None,
    sets: Sequence[str] = (),
    data: Path | None = None,
    progress: Progress | None = None,
) -> str:
    """The content of the result file of a run, or of an export for the data of a recipe.

    form   the name of the format: `reading.results.ResultFiles.name` of an installed metric
    steps  the steps that predict; default: the best step with such predictions (`best_step`). For an example of several
           steps, the first step counts
    split  a split of the data on which a step is scored; default: the split on which the step is scored
    sets   overrides of the data ("data.subtask=every"), and those of `load`
    data   the file of a recipe whose data an export is applied to: those of the step with the name of the export's, if
           it is scored on its own, else the recipe's

    Raises RunError, RecipeError, DataError, PluginError and UnavailableError."""
    folder, registry = RunFolder(find_folder(where)), installed()
    judge, files = _find_format(form, registry)
    recipe, of_data = folder.recipe(registry), [setting for setting in sets if OF_DATA.match(setting)]
    if data and not isinstance(recipe.data, NoData):
        raise RunError(f"{folder.path}: --data is for exports; leave it out for a run, which has its own data")
    if data:
        source, (step,) = load_recipe(data, registry, None, tuple(of_data))[0], recipe.steps
        own = source.scored_data(step) if step in source.steps else None
        recipe = recipe.model_copy(update={"data": own or source.data})
    elif of_data:
        recipe = with_settings(recipe, of_data, registry)
    if not steps:
        trained = trained_steps(folder, recipe)
        suitable = [step for step in trained if not mismatch(recipe, step, judge, form)]
        steps = [best_step(recipe, folder, suitable or trained).name]
    values: dict[str, Any] = {}
    predicted: list[Example] = []
    for step in steps:
        if step in recipe.steps and (reason := mismatch(recipe, step, judge, form)):
            raise RunError(f"{where}: {reason}; choose another step with --step")
        predictor = load(folder.path, step, sets=[setting for setting in sets if setting not in of_data])
        if data:
            prepare_inputs(predictor.model, recipe, partial(Datasets, recipe))
        config = recipe.scored_data(step) or recipe.data
        dataset = build_split(config, split)
        examples = [example for example in dataset.split(split or config.test_split) if example.id not in values]
        values |= {answer.id: answer.value for answer in _answers(predictor, dataset, examples, progress or Progress())}
        predicted += examples
    return files.write(values, predicted)


def _answers(
    predictor: Predictor, dataset: Dataset, examples: Sequence[Example], progress: Progress
) -> Iterator[Answer]:
    """The answer to each example. Features that the model has no store of are extracted for the time being."""
    with TemporaryDirectory() as temporary:
        for name, embedder in predictor.features.embedders.items():
            if embedder.reader.path is None:
                extractor, store = predictor.features.extractor(name), Path(temporary) / name
                extract(extractor, [*pictures_of(dataset, examples).values()], store, progress=progress)
                embedder.reader.path = store
        with progress.task(f"{predictor.step}: predicting", len(examples), "examples") as advance:
            for answer in predictor.answers(examples, batch_size=32):
                yield answer
                advance()


def _find_format(form: str, registry: Registry) -> tuple[type[MetricConfig], ResultFiles]:
    """The metric with this result format, and the format. Raises DataError."""
    formats = {
        files.name: (part.config, files)
        for part in registry.of_kind("metric")
        if issubclass(part.config, MetricConfig) and (files := part.config.result_files())
    }
    if form not in formats:
        known = f"{did_you_mean(form, formats)}; available: {', '.join(sorted(formats))}"
        raise DataError(f"--as {form}: unknown result format{known}")
    return formats[form]


def mismatch(recipe: Recipe, step: str, judge: type[MetricConfig], form: str) -> str:
    """Why the predictions of a step cannot be written in the format of a metric; empty if they can."""
    objective, kind = recipe.predicts(step) or ("", "nothing")
    if kind not in judge.judges:
        return f"step '{step}' predicts {kind}, but {form} needs {' or '.join(sorted(judge.judges))}"
    learnt = recipe.objectives[objective].required_labels if objective in recipe.objectives else judge.required_labels
    known = {*learnt}.intersection((recipe.scored_data(step) or recipe.data).labels)
    missing = [label for label in judge.required_labels if label not in known]
    return f"step '{step}' and its data have no label '{missing[0]}', which {form} needs" if missing else ""
