"""Scores of a run's texts and predictions, by the recipe's metrics or others; nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from .. import report
from ..configs import MetricConfig
from ..errors import RecipeError, RunError
from ..evaluation import score
from ..evaluation.answers import answers_file, read_answers
from ..evaluation.references import reference_scores
from ..examples import Scores
from ..progress import Progress
from ..recipe.load import select_parts
from ..registry import installed
from ..storage.run_folder import RunFolder
from ..storage.scored_examples import ScoredExamples


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
    judged = [name for name in answered if recipe.judging(name)]
    idle = [name for name in recipe.metrics if not any(name in recipe.judging(step) for step in answered)]
    if idle and (names or not judged):
        judges = " or ".join(sorted(recipe.metrics[idle[0]].judges))
        raise RecipeError(f"metric {idle[0]}: judges {judges}; no step of this run has answers that it could score")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    datasets = ScoredExamples(recipe, folder.path)
    metrics, rows, ids = score.build_metrics(recipe, judged, datasets, device), {}, {}
    for name in judged:
        place, examples = folder.step(name), datasets.scored_by(name)
        answers, used = read_answers(recipe, name, place), {key: metrics[key] for key in recipe.judging(name)}
        scores = score.score_predictions(name, answers, examples, used, place, progress or Progress())
        rows[name] = report.with_remarks(scores, name, place)
        ids[name] = tuple(example.id for example in examples)
    references = reference_scores(recipe, judged, datasets, None, metrics)
    tables = report.tables_of_scores(
        recipe, {name: {recipe.seed: of} for name, of in rows.items()}, datasets, references
    )
    return Rescored(rows, ids, "\n\n".join(map(str, tables)))
