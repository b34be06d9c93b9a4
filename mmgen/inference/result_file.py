"""Write a result file: predictions of a run or an export for a split, in the format that a task's evaluation reads."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..configs import MetricConfig
from ..data.datasets import Datasets, build_split, pictures_of
from ..errors import RunError
from ..evaluation.answers import predict
from ..examples import Example
from ..features.extract import extract
from ..parts import Dataset
from ..progress import Progress
from ..reading.results import ResultFiles
from ..recipe.load import load as load_recipe
from ..recipe.load import with_settings
from ..recipe.tables import NoData, Recipe
from ..registry import Registry, find_format, installed
from ..storage.model_files import prepare_inputs
from ..storage.run_folder import RunFolder
from .best_step import ChosenStep, best_step
from .hub import find_folder
from .load import load
from .predictor import Predictor

OF_DATA = re.compile(r"(steps\.[^.=]+\.)?data\.")  # the beginning of a setting of the data
AT_ONCE = 512  # examples
log = logging.getLogger("mmgen")


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
    if data:
        recipe = _with_data(folder, recipe, load_recipe(data, registry, None, tuple(of_data))[0])
    elif of_data:
        recipe = with_settings(recipe, of_data, registry)
    chosen = None if steps else _best_step(folder, recipe, judge, form)
    values: dict[str, Any] = {}
    predicted: list[Example] = []
    for step in [chosen.name] if chosen else steps:
        if step in recipe.steps and (reason := mismatch(recipe, step, judge, form)):
            raise RunError(f"{where}: {reason}; choose another step with --step")
        predictor = load(folder.path, step, sets=[setting for setting in sets if setting not in of_data])
        if data:
            prepare_inputs(predictor.model, recipe, partial(Datasets, recipe))
        config = recipe.scored_data(step) or recipe.data
        dataset = build_split(config, split)
        examples = [example for example in dataset.split(split or config.test_split) if example.id not in values]
        values |= {outcome.id: outcome.value for outcome in _outcomes(predictor, dataset, examples, progress)}
        predicted += examples
    text = files.write(values, predicted)
    if chosen and chosen.reason:
        log.info("%s: predicted by step '%s', %s", where, chosen.name, chosen.reason)
    return text


def _with_data(folder: RunFolder, recipe: Recipe, source: Recipe) -> Recipe:
    """The recipe of an export with the data of another one. Raises RunError for a run."""
    if not isinstance(recipe.data, NoData):
        raise RunError(f"{folder.path}: --data is for exports; leave it out for a run, which has its own data")
    (step,) = recipe.steps
    own = source.scored_data(step) if step in source.steps else None
    return recipe.model_copy(update={"data": own or source.data})


def _outcomes(
    predictor: Predictor, dataset: Dataset, examples: Sequence[Example], progress: Progress | None
) -> list[Any]:
    """The best text, or the prediction, of each example. Features that the model has no store of are extracted for the
    time being."""
    progress, outcomes, inputs = progress or Progress(), list[Any](), tuple(predictor.names.inputs)
    with TemporaryDirectory() as temporary:
        for name, embedder in predictor.features.embedders.items():
            if embedder.reader.path is None:
                extractor, store = predictor.features.extractor(name), Path(temporary) / name
                extract(extractor, [*pictures_of(dataset, examples).values()], store, progress=progress)
                embedder.reader.path = store
        with progress.task(f"{predictor.step}: predicting", len(examples), "examples") as advance:
            for first in range(0, len(examples), AT_ONCE):
                batch = examples[first : first + AT_ONCE]
                if predictor.kind == "text":
                    outcomes += [best_first[0] for best_first in predictor.generate(batch)]
                else:
                    outcomes += predict(predictor.model, batch, predictor.objective, inputs)
                advance(len(batch))
    return outcomes


def _find_format(form: str, registry: Registry) -> tuple[type[MetricConfig], ResultFiles]:
    """The metric with this result format, and the format. Raises DataError for an unknown format, PluginError if two
    plugins have one."""
    formats = [
        (part, files)
        for part in registry.of_kind("metric")
        if issubclass(part.config, MetricConfig) and (files := part.config.result_files())
    ]
    part, files = find_format("result format", form, formats)
    assert issubclass(part.config, MetricConfig)
    return part.config, files


def _best_step(folder: RunFolder, recipe: Recipe, judge: type[MetricConfig], form: str) -> ChosenStep:
    """The best trained step whose predictions and data suit the metric. Raises RunError if no step does."""
    trained = [step for step in recipe.steps if folder.trained(recipe, step)]
    if suitable := [step for step in trained if not mismatch(recipe, step, judge, form)]:
        return best_step(recipe, folder, suitable)
    if len(trained) == 1:
        return ChosenStep(trained[0], "")  # whose mismatch says more
    raise RunError(f"{folder.path}: no trained step predicts {' or '.join(sorted(judge.judges))} for {form}")


def mismatch(recipe: Recipe, step: str, judge: type[MetricConfig], form: str) -> str:
    """Why the predictions of a step cannot be written in the format of a metric; empty if they can."""
    objective, kind = recipe.predicts(step) or ("", "nothing")
    if kind not in judge.judges:
        return f"step '{step}' predicts {kind}, but {form} needs {' or '.join(sorted(judge.judges))}"
    learnt = recipe.objectives[objective].required_labels if objective in recipe.objectives else judge.required_labels
    for label in judge.required_labels:
        if label not in learnt:
            return f"step '{step}' predicts '{learnt[0] if learnt else kind}', but {form} needs '{label}'"
        if label not in (recipe.scored_data(step) or recipe.data).labels:
            return f"the data of step '{step}' have no label '{label}', which {form} needs"
    return ""
