"""Scores of a run's texts and predictions, by the recipe's metrics or others; nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
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
from ..progress import Progress
from ..recipe.load import select_parts
from ..recipe.tables import Recipe
from ..registry import installed
from ..storage.run_folder import RunFolder
from ..storage.scored_examples import ScoredExamples
from ..tensors import Scores


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
    folder, registry = RunFolder(Path(path)), installed()
    recipe = folder.recipe(registry)
    recipe = recipe.model_copy(update={"metrics": select_parts(MetricConfig, recipe.metrics, names, sets, registry)})
    scored = [name for name, step in recipe.steps.items() if step.evaluate]
    answered = [name for name in scored if folder.finished(name, answers_file(recipe, name))]
    if not answered:
        raise RunError(f"{folder.path}: no step has texts or predictions yet; continue with `mmgen run`")
    _check_metrics(recipe, answered, bool(names))
    judged = [name for name in answered if recipe.judging(name)]
    datasets, device = _scored_data(recipe, folder), torch.device("cuda" if torch.cuda.is_available() else "cpu")
    metrics = score.build_metrics(recipe, judged, datasets, device)
    rows, ids = {}, {}
    for name in judged:
        place, examples = folder.step(name), datasets.scored_by(name)
        answers, used = read_answers(recipe, name, place), {key: metrics[key] for key in recipe.judging(name)}
        scores = score.score_predictions(name, answers, examples, used, place, progress or Progress())
        rows[name] = report.with_remarks(scores, name, place)
        ids[name] = tuple(example.id for example in examples)
    references = reference_scores(recipe, judged, datasets, folder.path, metrics, save=False)
    tables = report.tables_of_scores(recipe, rows, datasets, references)
    return Rescored(rows, ids, "\n\n".join(map(str, tables)))


def _scored_data(recipe: Recipe, folder: RunFolder) -> ScoredOn:
    """The data on which the run was scored; the run's copy if the data are not available. Raises RunError if the
    examples have changed since the run."""
    try:
        datasets = Datasets(recipe)
        changed = folder.fingerprint() != datasets.fingerprint()
    except DataError:
        return ScoredExamples(recipe, folder.path)
    if changed:
        raise RunError(f"{folder.path}: the data set's examples have changed since the run; restore the original data")
    return datasets


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
