"""Scores of a run's or an export's texts and predictions, by the recipe's metrics or others; nothing is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from .. import report
from ..configs import MetricConfig
from ..data.datasets import Datasets, ScoredOn
from ..errors import DataError, RecipeError, RunError
from ..evaluation import score
from ..evaluation.answers import answers_file, read_answers
from ..evaluation.references import reference_scores
from ..inference.export_with_data import DataSource, predictions_of, with_data
from ..progress import Progress
from ..recipe.select_parts import select_parts
from ..recipe.tables import Recipe
from ..registry import installed
from ..storage.run_folder import RunFolder
from ..storage.scored_examples import ScoredExamples
from ..tensors import Generation, Prediction, Scores

Answers = Mapping[str, Sequence[Generation] | Sequence[Prediction]]  # step -> the best text or prediction of examples


@dataclass(frozen=True)
class Rescored:
    """The scores of every step, the ids of its examples, and the tables as Markdown."""

    rows: dict[str, Scores]
    ids: dict[str, tuple[str, ...]]
    table: str


def rescore(
    path: str | Path, names: Sequence[str] = (), sets: Sequence[str] = (), progress: Progress | None = None
) -> Rescored:
    """Score every step of a run that has texts or predictions. A step that no metric judges is left out.

    names  metrics of the recipe, or else installed ones; default: the recipe's metrics
    sets   overrides of metrics, such as "captioneval.meteor=false"
    Raises RunError, RecipeError."""
    folder = RunFolder(Path(path))
    recipe = _with_metrics(folder.recipe(installed()), names, sets)
    answered = [
        name
        for name, step in recipe.steps.items()
        if step.evaluate and folder.finished(name, answers_file(recipe, name))
    ]
    if not answered:
        raise RunError(f"{folder.path}: no step has texts or predictions yet; continue with `mmgen run`")
    _check_metrics(recipe, answered, bool(names))
    try:
        datasets: ScoredOn = same_data(recipe, folder)
    except DataError:  # the data are not available, but the run has a copy of the examples
        datasets = ScoredExamples(recipe, folder.path)
    answers = {name: read_answers(recipe, name, folder.step(name)) for name in answered if recipe.judging(name)}
    return _score(recipe, answers, datasets, folder, progress or Progress())


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
        recipe = _with_metrics(export.recipe, names, sets)
        _check_metrics(recipe, [export.step], bool(names))
        answers = {export.step: predictions_of(export.load(), export.examples, progress)}
        return _score(recipe, answers, export.datasets, None, progress)


def same_data(recipe: Recipe, folder: RunFolder) -> Datasets:
    """The data sets of a run. Raises RunError if their examples have changed since the run."""
    datasets = Datasets(recipe)
    if folder.fingerprint() != datasets.fingerprint():
        raise RunError(f"{folder.path}: the data set's examples have changed since the run; restore the original data")
    return datasets


def _score(
    recipe: Recipe, answers: Answers, datasets: ScoredOn, folder: RunFolder | None, progress: Progress
) -> Rescored:
    data, device = score.datasets_of(recipe, datasets), torch.device("cuda" if torch.cuda.is_available() else "cpu")
    judging = {name: config for step in answers for name, config in recipe.judging(step).items()}
    metrics = {name: score.build_metric(name, config, data, device) for name, config in judging.items()}
    rows, ids = {}, {}
    for step, predicted in answers.items():
        examples, used = datasets.scored_by(step), {name: metrics[name] for name in recipe.judging(step)}
        place = folder.step(step) if folder else Path(step)
        scores = score.score_predictions(step, predicted, examples, used, place, progress)
        rows[step] = report.with_remarks(scores, step, place)
        ids[step] = tuple(example.id for example in examples)
    references = reference_scores(recipe, rows, datasets, folder.path if folder else None, metrics, save=False)
    tables = report.tables_of_scores(recipe, rows, datasets, references)
    return Rescored(rows, ids, "\n\n".join(map(report.markdown, tables)))


def _with_metrics(recipe: Recipe, names: Sequence[str], sets: Sequence[str]) -> Recipe:
    metrics = select_parts(MetricConfig, recipe.metrics, names, sets, installed())
    return recipe.model_copy(update={"metrics": metrics})


def _check_metrics(recipe: Recipe, steps: Sequence[str], named: bool) -> None:
    """Raises RecipeError if one of the named metrics, or every metric of the recipe, judges nothing that these steps
    predict."""
    judging = {name for step in steps for name in recipe.judging(step)}
    idle = {name: config for name, config in recipe.metrics.items() if name not in judging}
    if idle and (named or not judging):
        name, config = next(iter(idle.items()))
        predicted = " and ".join(sorted({predicts[1] for step in steps if (predicts := recipe.predicts(step))}))
        needs = f" of examples with {' and '.join(config.required_labels)}" if config.required_labels else ""
        raise RecipeError(
            f"metric {name}: judges {' or '.join(sorted(config.judges))}{needs}, but the steps of this run predict "
            f"{predicted}; choose another metric"
        )
