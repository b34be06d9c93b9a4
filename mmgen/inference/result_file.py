"""Write a result file: predictions of a run or an export for a split, in the format that a task's evaluation reads."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..configs import MetricConfig
from ..data.datasets import build_split
from ..errors import DataError, RunError
from ..examples import Example
from ..progress import Progress
from ..reading.results import ResultFiles
from ..recipe.layers import setting_table
from ..recipe.load import with_settings
from ..recipe.tables import Recipe
from ..registry import Registry, find_format, installed
from ..storage.run_folder import RunFolder
from .best_step import ChosenStep, best_step
from .export_with_data import DataSource, predictions_of, with_data
from .load import load

log = logging.getLogger("mmgen")


def result_file(
    path: str | Path,
    form: str,
    steps: Sequence[str] = (),
    split: str | None = None,
    sets: Sequence[str] = (),
    progress: Progress | None = None,
) -> str:
    """The content of the result file.

    form   the name of the format: `reading.results.ResultFiles.name` of an installed metric
    steps  the steps that predict; default: the best step with such predictions (`best_step`). For an example of several
           steps, the first step counts
    split  a split of the data on which a step is scored; default: the split on which the step is scored
    sets   overrides of the data ("data.subtask=every"), and those of `load`

    Raises RunError, RecipeError, DataError."""
    folder, registry, progress = RunFolder(Path(path)), installed(), progress or Progress()
    judge, files = _find_format(form, registry)
    recipe = folder.recipe(registry)
    data_settings = [setting for setting in sets if _is_data_setting(setting)]
    chosen = None if steps else _best_step(folder, recipe, judge, form)
    steps = [chosen.name] if chosen else steps
    _check_used(recipe, steps, data_settings)
    data_recipe = with_settings(recipe, data_settings, registry) if data_settings else recipe
    values: dict[str, Any] = {}
    predicted_examples: dict[str, Example] = {}
    for step in steps:
        if step in recipe.steps and (reason := mismatch(data_recipe, step, judge, form)):
            raise RunError(f"{path}: {reason}; choose another step with --step")
        run = load(path, step, sets=[setting for setting in sets if setting not in data_settings])
        config = data_recipe.scored_data(step) or data_recipe.data
        scored = build_split(config, split).split(split or config.test_split)
        examples = [example for example in scored if example.id not in values]
        predicted_examples |= {example.id: example for example in examples}
        values |= {outcome.id: outcome.value for outcome in predictions_of(run, examples, progress)}
    text = files.write(values, [*predicted_examples.values()])
    if chosen and chosen.reason:
        log.info("%s: predicted by step '%s', %s", path, chosen.name, chosen.reason)
    return text


def result_file_of_export(
    where: str | Path, form: str, source: DataSource, sets: Sequence[str] = (), progress: Progress | None = None
) -> str:
    """The content of the result file of an export for the data of a recipe. `sets`: see `result_file`."""
    progress = progress or Progress()
    judge, files = _find_format(form, installed())
    data_settings = tuple(setting for setting in sets if _is_data_setting(setting))
    source = replace(source, sets=(*source.sets, *data_settings))
    own_settings = [setting for setting in sets if setting not in data_settings]
    with with_data(where, source, own_settings, progress) as (predictor, recipe, examples):
        if reason := mismatch(recipe, predictor.step, judge, form):
            raise RunError(f"{where}: {reason}; choose another recipe with --data, or another export")
        outcomes = predictions_of(predictor, examples, progress)
        return files.write({outcome.id: outcome.value for outcome in outcomes}, [*examples])


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


def _is_data_setting(setting: str) -> bool:
    """Whether a setting is a key of the data, and not of the model."""
    table, _ = setting_table(setting)
    steps = table.get("steps", {"": {}})
    only_data = isinstance(steps, dict) and all(
        isinstance(settings, dict) and set(settings) <= {"data"} for settings in steps.values()
    )
    return set(table) <= {"data", "steps"} and only_data


def _check_used(recipe: Recipe, steps: Sequence[str], settings: Sequence[str]) -> None:
    """Raises DataError for a setting of the recipe's data if all steps are scored on their own data."""
    all_have_data = all(step in recipe.steps and recipe.scored_data(step) for step in steps)
    for setting in settings:
        if all_have_data and "data" in setting_table(setting)[0]:
            raise DataError(
                f"--set {setting}: step '{steps[0]}' is scored on its own data; write --set steps.{steps[0]}.{setting}"
            )


def _best_step(folder: RunFolder, recipe: Recipe, judge: type[MetricConfig], form: str) -> ChosenStep:
    """The best trained step whose predictions and data suit the metric. Raises RunError if no step does."""
    trained = [step for step in recipe.steps if folder.trained(recipe, step)]
    suitable = [step for step in trained if not mismatch(recipe, step, judge, form)]
    if not suitable:
        raise RunError(f"{folder.path}: no trained step predicts {' or '.join(sorted(judge.judges))} for {form}")
    return best_step(recipe, folder, suitable)


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
