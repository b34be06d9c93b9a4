"""Rescore: a finished run's texts are scored again, with its recipe's metrics or others; the run stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import report
from ..configs import MetricConfig
from ..errors import DataError, RunError
from ..evaluation import score
from ..parts import Dataset
from ..progress import Progress
from ..recipe.choice import chosen
from ..recipe.tables import Recipe
from ..registry import installed
from ..storage import decodings, generations, kept_examples
from ..storage.run_folder import RunFolder
from ..tensors import Example, Scores
from .rewrite import same_data


@dataclass(frozen=True)
class Rescored:
    """Scores of every row, the ids of the examples that they are about, and the table as a person reads it."""

    rows: dict[str, Scores]
    ids: tuple[str, ...]
    table: str


def rescore(
    path: str | Path, names: Sequence[str] = (), sets: Sequence[str] = (), progress: Progress | None = None
) -> Rescored:
    """Scores of every step of a run that has texts, and of its decodings; nothing is written.

    names  metrics: of the recipe, or else of those installed; by default the recipe's
    sets   their settings, such as "captioneval.meteor=false"
    Raises RunError, RecipeError."""
    folder, registry, progress = RunFolder(Path(path)), installed(), progress or Progress()
    recipe = folder.recipe(registry)
    recipe = recipe.model_copy(update={"metrics": chosen(MetricConfig, recipe.metrics, names, sets, registry)})
    places: dict[str, Path] = {}
    for step in recipe.steps:
        if recipe.writes(step) and generations.there(folder.step(step)):
            places[step] = folder.step(step)
            again = [each for each in decodings.folders(folder, step) if generations.there(each)]
            places |= {decodings.label(step, each.name): each for each in again}
    if not places:
        raise RunError(f"{folder.path}: no step has written anything yet; go on with `mmgen run`")
    dataset, examples = _scored(recipe, folder)
    metrics = {called: config.build() for called, config in recipe.metrics.items() if "text" in config.judges}
    rows = {
        label: score.score(label, generations.read(place), examples, metrics, place, progress)
        for label, place in places.items()
    }
    rows = {
        label: score.merge(found, Scores({}, notes=report.remarks(label, places[label])))
        for label, found in rows.items()
    }
    ids = tuple(example.id for example in examples)
    return Rescored(rows, ids, report.markdown(report.of_scores(recipe, rows, dataset)))


def _scored(recipe: Recipe, folder: RunFolder) -> tuple[Dataset, Sequence[Example]]:
    """The run's data and what it was scored on; the run's own copy where its data are not there."""
    try:
        datasets = same_data(recipe, folder)
        return datasets.main, datasets.scored
    except DataError:
        dataset = kept_examples.dataset_of(recipe, folder.path)
        return dataset, dataset.split(recipe.data.evaluate)
