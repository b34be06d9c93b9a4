"""Rescoring of the texts and predictions of a run, with its own or other metrics, without changes to the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from .. import report
from ..configs import MetricConfig
from ..data.datasets import ScoredOn
from ..errors import DataError, RecipeError, RunError
from ..evaluation import score
from ..inference.export_with_data import DataSource, predictions_of, with_data
from ..parts import Metric
from ..progress import Progress
from ..recipe.select_parts import select_parts
from ..recipe.tables import Recipe
from ..registry import installed
from ..storage import decodings, generations, predictions, scored_examples
from ..storage.run_folder import RunFolder
from ..tensors import Example, Scores
from .rewrite import same_data


@dataclass(frozen=True)
class Rescored:
    """The scores of every row, the ids of the examples of every row, and the tables as Markdown."""

    rows: dict[str, Scores]
    ids: dict[str, tuple[str, ...]]
    table: str


def rescore(
    path: str | Path, names: Sequence[str] = (), sets: Sequence[str] = (), progress: Progress | None = None
) -> Rescored:
    """Score every step of a run that has texts or predictions, and its decodings; write no files. A step that no metric
    judges is left out.

    names  metrics of the recipe, or else installed ones; default: the recipe's metrics
    sets   overrides of metrics, such as "captioneval.meteor=false"
    Raises RunError, RecipeError."""
    folder, registry, progress = RunFolder(Path(path)), installed(), progress or Progress()
    recipe = folder.recipe(registry)
    recipe = recipe.model_copy(update={"metrics": select_parts(MetricConfig, recipe.metrics, names, sets, registry)})
    finished_steps = [name for name in recipe.steps if _has_results(recipe, folder, name)]
    if not finished_steps:
        raise RunError(f"{folder.path}: no step has texts or predictions yet; continue with `mmgen run`")
    _check_metrics(recipe, finished_steps, bool(names))
    datasets = _scored_data(recipe, folder)
    data, device = score.datasets_of(recipe, datasets), torch.device("cuda" if torch.cuda.is_available() else "cpu")
    metrics = {name: score.build_metric(name, config, data, device) for name, config in recipe.metrics.items()}
    rows: dict[str, dict[str, Scores]] = {}
    ids: dict[str, tuple[str, ...]] = {}
    for name in finished_steps:
        judging = {metric_name: metrics[metric_name] for metric_name in recipe.judging(name)}
        if judging:
            examples = datasets.scored_by(name)
            rows[name] = _score_step(recipe, folder, name, examples, judging, progress)
            ids |= {label: tuple(example.id for example in examples) for label in rows[name]}
    tables = "\n\n".join(map(report.markdown, report.tables_of_scores(recipe, rows, datasets)))
    return Rescored({label: scores for step_rows in rows.values() for label, scores in step_rows.items()}, ids, tables)


def score_export(
    where: str | Path,
    source: DataSource,
    names: Sequence[str] = (),
    sets: Sequence[str] = (),
    progress: Progress | None = None,
) -> Rescored:
    """Write or predict the examples of a recipe with an export, and score them. `names`, `sets`: see `rescore`; by
    default the metrics of that recipe. Raises RunError, RecipeError, DataError."""
    progress = progress or Progress()
    with with_data(where, source, progress=progress) as export:
        metrics = select_parts(MetricConfig, export.recipe.metrics, names, sets, installed())
        recipe, step, examples = export.recipe.model_copy(update={"metrics": metrics}), export.step, export.examples
        _check_metrics(recipe, [step], bool(names))
        predictor = export.load()
        data, device = score.datasets_of(recipe, export.datasets), predictor.model.device
        judging = {
            name: score.build_metric(name, config, data, device) for name, config in recipe.judging(step).items()
        }
        outcomes = predictions_of(predictor, examples, progress)
        scores = score.score_predictions(step, outcomes, examples, judging, Path(where), progress)
        rows = {step: {step: scores}}
        tables = "\n\n".join(map(report.markdown, report.tables_of_scores(recipe, rows, export.datasets)))
        return Rescored(rows[step], {step: tuple(example.id for example in examples)}, tables)


def _has_results(recipe: Recipe, folder: RunFolder, step: str) -> bool:
    """Whether a step is scored and all its texts or predictions exist."""
    file = "generations.jsonl" if recipe.makes_texts(step) else predictions.FILE
    return bool(recipe.steps[step].evaluate) and folder.finished(step, file)


def _check_metrics(recipe: Recipe, steps: Sequence[str], named: bool) -> None:
    """Raises RecipeError if one of the named metrics, or every metric of the recipe, judges nothing that these steps
    predict."""
    judging = {name for step in steps for name in recipe.judging(step)}
    idle = {name: config for name, config in recipe.metrics.items() if name not in judging}
    if idle and (named or not judging):
        name, config = next(iter(idle.items()))
        step_kind_set = {predicts[1] for step in steps if (predicts := recipe.predicts(step))}
        metric_kinds, step_kinds = " or ".join(sorted(config.judges)), " and ".join(sorted(step_kind_set))
        needs = f" of examples with {' and '.join(config.required_labels)}" if config.required_labels else ""
        raise RecipeError(
            f"metric {name}: judges {metric_kinds}{needs}, but the steps of this run predict {step_kinds}; choose "
            "another metric"
        )


def _score_step(
    recipe: Recipe,
    folder: RunFolder,
    step: str,
    examples: Sequence[Example],
    metrics: Mapping[str, Metric],
    progress: Progress,
) -> dict[str, Scores]:
    """The scores of a step and of its other decodings, by the labels of their rows."""
    place = folder.step(step)
    if not recipe.makes_texts(step):
        file = place / predictions.FILE
        step_predictions = predictions.read(place)
        return {step: score.score_predictions(step, step_predictions, examples, metrics, file, progress)}
    other_decodings = [decoding for decoding in decodings.folders(folder, step) if generations.is_complete(decoding)]
    rows = {}
    for label, row_folder in {
        step: place,
        **{decodings.label(step, row_folder.name): row_folder for row_folder in other_decodings},
    }.items():
        scores = score.score(label, generations.read(row_folder), examples, metrics, row_folder, progress)
        rows[label] = score.merge(scores, Scores({}, notes=report.remarks(label, row_folder)))
    return rows


def _scored_data(recipe: Recipe, folder: RunFolder) -> ScoredOn:
    """The data on which the run was scored; the run's copy if the data are not available."""
    try:
        return same_data(recipe, folder)
    except DataError:
        return scored_examples.ScoredExamples(recipe, folder.path)
