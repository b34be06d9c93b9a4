"""Rescore: what a finished run's steps wrote and predicted is scored again, with its metrics or others; the run stays
as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import report
from ..configs import MetricConfig
from ..data.datasets import ScoredOn
from ..errors import DataError, RecipeError, RunError
from ..evaluation import score
from ..parts import Metric
from ..progress import Progress
from ..recipe.choice import select_parts
from ..recipe.tables import Recipe
from ..registry import installed
from ..storage import decodings, generations, kept_examples, predictions
from ..storage.run_folder import RunFolder
from ..tensors import Example, Scores
from .rewrite import same_data


@dataclass(frozen=True)
class Rescored:
    """Scores of every row, the ids of the examples that each is about, and the tables as a person reads them."""

    rows: dict[str, Scores]
    ids: dict[str, tuple[str, ...]]
    table: str


def rescore(
    path: str | Path, names: Sequence[str] = (), sets: Sequence[str] = (), progress: Progress | None = None
) -> Rescored:
    """Scores of every step of a run that has texts or predictions, and of its decodings; nothing is written. A step
    that no metric judges is left out.

    names  metrics: of the recipe, or else of those installed; by default the recipe's
    sets   their settings, such as "captioneval.meteor=false"
    Raises RunError, RecipeError."""
    folder, registry, progress = RunFolder(Path(path)), installed(), progress or Progress()
    recipe = folder.recipe(registry)
    recipe = recipe.model_copy(update={"metrics": select_parts(MetricConfig, recipe.metrics, names, sets, registry)})
    answered = [name for name in recipe.steps if _answered(recipe, folder, name)]
    if not answered:
        raise RunError(f"{folder.path}: no step has written or predicted anything yet; go on with `mmgen run`")
    _refuse_idle(recipe, answered, bool(names))
    datasets = _scored(recipe, folder)
    metrics = {called: config.build() for called, config in recipe.metrics.items()}
    rows: dict[str, dict[str, Scores]] = {}
    ids: dict[str, tuple[str, ...]] = {}
    for name in answered:
        judging = {called: metrics[called] for called in recipe.judging(name)}
        if judging:
            examples = datasets.scored_by(name)
            rows[name] = _rows(recipe, folder, name, examples, judging, progress)
            ids |= {label: tuple(example.id for example in examples) for label in rows[name]}
    tables = "\n\n".join(map(report.markdown, report.tables_of_scores(recipe, rows, datasets)))
    return Rescored({label: scores for own in rows.values() for label, scores in own.items()}, ids, tables)


def _answered(recipe: Recipe, folder: RunFolder, step: str) -> bool:
    """Whether a step is scored and all of its texts or predictions are there."""
    file = "generations.jsonl" if recipe.makes_texts(step) else predictions.FILE
    return bool(recipe.steps[step].evaluate) and folder.finished(step, file)


def _refuse_idle(recipe: Recipe, steps: Sequence[str], named: bool) -> None:
    """Raises RecipeError where one of the metrics that were named, or each of the recipe's, judges nothing that these
    steps give."""
    judging = {name for step in steps for name in recipe.judging(step)}
    idle = {name: config for name, config in recipe.metrics.items() if name not in judging}
    if idle and (named or not judging):
        name, config = next(iter(idle.items()))
        gives = {predicts[1] for step in steps if (predicts := recipe.predicts(step))}
        judged, given = " or ".join(sorted(config.judges)), " and ".join(sorted(gives))
        needs = f" of examples with {' and '.join(config.labels)}" if config.labels else ""
        raise RecipeError(
            f"metric {name}: judges {judged}{needs}, and the steps of this run give {given}; choose another"
        )


def _rows(
    recipe: Recipe,
    folder: RunFolder,
    step: str,
    examples: Sequence[Example],
    metrics: Mapping[str, Metric],
    progress: Progress,
) -> dict[str, Scores]:
    """The scores of a step, and of the decodings that it has written again with, by the labels of their rows."""
    place = folder.step(step)
    if not recipe.makes_texts(step):
        file = place / predictions.FILE
        made = predictions.read(place)
        return {step: score.score_predictions(step, made, examples, metrics, file, progress)}
    again = [each for each in decodings.folders(folder, step) if generations.is_complete(each)]
    found = {}
    for label, each in {step: place, **{decodings.label(step, each.name): each for each in again}}.items():
        scores = score.score(label, generations.read(each), examples, metrics, each, progress)
        found[label] = score.merge(scores, Scores({}, notes=report.remarks(label, each)))
    return found


def _scored(recipe: Recipe, folder: RunFolder) -> ScoredOn:
    """What the run was scored on; its own copy where its data are not there."""
    try:
        return same_data(recipe, folder)
    except DataError:
        return kept_examples.ScoredExamples(recipe, folder.path)
