"""Result file: what steps of a run predict for a whole split, as the file that a task's evaluation reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..configs import MetricConfig
from ..data.datasets import build_split
from ..errors import DataError, RunError, did_you_mean
from ..evaluation.predict import predict
from ..progress import Progress
from ..reading.results import ResultFiles
from ..recipe.layers import setting_table
from ..recipe.load import with_settings
from ..recipe.tables import Recipe
from ..registry import Registry, installed
from ..storage.run_folder import RunFolder
from ..tensors import Example
from .load import load_run
from .predictor import Predictor

AT_ONCE = 512  # examples


def result_file(
    path: str | Path,
    form: str,
    steps: Sequence[str] = (),
    split: str | None = None,
    sets: Sequence[str] = (),
    progress: Progress | None = None,
) -> str:
    """The text of the file.

    form   how it is called: `reading.results.ResultFiles.name` of a metric that is installed
    steps  whose predictions, by default the last step's that makes such; what an earlier one of several has predicted,
           the later ones are not asked
    split  of what a step is scored on, by default the one that it is scored on
    sets   settings of the data ("data.subtask=every"), and those of `load_run`

    Raises RunError, RecipeError, DataError."""
    folder, registry, progress = RunFolder(Path(path)), installed(), progress or Progress()
    judge, files = _called(form, registry)
    recipe = folder.recipe(registry)
    own = [setting for setting in sets if _of_data(setting)]
    told = with_settings(recipe, own, registry) if own else recipe
    values: dict[str, Any] = {}
    wanted: dict[str, Example] = {}
    for step in steps or [_last(folder, recipe, judge, form)]:
        run = load_run(path, step, sets=[setting for setting in sets if setting not in own])
        predicts = recipe.predicts(step)
        if predicts is None or predicts[1] not in judge.judges:
            gives = predicts[1] if predicts else "nothing"
            raise RunError(
                f"{path}: the step '{step}' predicts {gives}; {form} wants {' or '.join(sorted(judge.judges))}"
            )
        config = told.own_data(step) or told.data
        if absent := [label for label in judge.labels if label not in config.labels]:
            raise RunError(
                f"{path}: the step '{step}' is scored on data without '{absent[0]}', which {form} needs; choose "
                "another with --step"
            )
        scored = build_split(config, split).split(split or config.test_split)
        examples = [one for one in scored if one.id not in values]
        wanted |= {one.id: one for one in examples}
        values |= _predicted(run, examples, progress)
    return files.write(values, [*wanted.values()])


def _called(form: str, registry: Registry) -> tuple[type[MetricConfig], ResultFiles]:
    """The metric that has these files, and the files. Raises DataError."""
    found: dict[str, tuple[type[MetricConfig], ResultFiles]] = {}
    for part in registry.of_kind("metric"):
        if issubclass(part.config, MetricConfig) and (files := part.config.result_files()):
            found[files.name] = part.config, files
    if form not in found:
        there = ", ".join(sorted(found)) or "none; install the package of a task"
        raise DataError(f"--as {form}: no result files are called that{did_you_mean(form, found)}; there are: {there}")
    return found[form]


def _of_data(setting: str) -> bool:
    """Whether a setting is of what is predicted for, and not of what predicts."""
    table, _ = setting_table(setting)
    steps = table.get("steps", {"": {}})
    own = isinstance(steps, dict) and all(isinstance(one, dict) and set(one) <= {"data"} for one in steps.values())
    return set(table) <= {"data", "steps"} and own


def _last(folder: RunFolder, recipe: Recipe, judge: type[MetricConfig], form: str) -> str:
    """The last step that has weights and predicts what the metric judges, of data with its labels. Raises RunError."""
    for step in reversed(recipe.steps):
        predicts, known = recipe.predicts(step), {*(recipe.own_data(step) or recipe.data).labels}
        fits = predicts and predicts[1] in judge.judges and known >= {*judge.labels}
        if fits and folder.finished(step, "weights.safetensors"):
            return step
    raise RunError(
        f"{folder.path}: no step that has been learnt predicts {' or '.join(sorted(judge.judges))} for {form}"
    )


def _predicted(run: Predictor, examples: Sequence[Example], progress: Progress) -> Iterator[tuple[str, Any]]:
    """(id, value) of every example. Raises DataError where an input of one cannot be had."""
    writes, inputs = run.kind == "text", tuple(run.names.inputs)
    for name in inputs:
        run.model.embedders[name].reader.find_gaps(examples)
    with progress.task(f"{run.step}: predicting", len(examples), "examples") as advance:
        for first in range(0, len(examples), AT_ONCE):
            some = examples[first : first + AT_ONCE]
            best = (
                [texts[0] for texts in run.generate(some)]
                if writes
                else predict(run.model, some, run.objective, inputs)
            )
            yield from ((each.id, each.value) for each in best)
            advance(len(some))
