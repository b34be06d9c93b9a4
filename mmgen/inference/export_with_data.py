"""An export with the data of a recipe, for commands that need examples: its step, its examples, its predictions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..configs import FeaturesConfig
from ..data.datasets import Datasets, pictures_of
from ..errors import DataError, RunError
from ..evaluation.answers import predict
from ..examples import Example
from ..features.extract import extract
from ..progress import Progress
from ..recipe.load import load as load_recipe
from ..recipe.tables import NoData, Recipe
from ..registry import installed
from ..storage.model_files import prepare_inputs
from .load import load
from .predictor import Predictor

AT_ONCE = 512  # examples


@dataclass(frozen=True)
class DataSource:
    """A recipe whose data an export is applied to: its file, profile and settings, and the split, by default the one
    that is scored."""

    path: Path
    profile: str | None = None
    sets: tuple[str, ...] = ()
    split: str | None = None


@contextlib.contextmanager
def with_data(
    where: str | Path, source: DataSource, sets: Sequence[str] = (), progress: Progress | None = None
) -> Iterator[tuple[Predictor, Recipe, Sequence[Example]]]:
    """The predictor of an export; its recipe with the data of another recipe; the examples of the split. Features of
    pictures are extracted by the export's own networks into a temporary folder, or taken from the file that the recipe
    names for the input of the same name.

    where  an export, or a name of the hub
    sets   overrides of the export, see `load`

    A step of the recipe with the name of the export's step chooses the data, if that step is scored on its own data.
    Raises RunError for a run folder, and RecipeError, DataError, PluginError."""
    predictor = load(where, sets=sets)
    if not isinstance(predictor.recipe.data, NoData):
        raise RunError(f"{where}: --data is for exports; leave it out for a run, which has its own data")
    step, source_recipe = predictor.step, load_recipe(source.path, installed(), source.profile, source.sets)[0]
    data = (source_recipe.scored_data(step) if step in source_recipe.steps else None) or source_recipe.data
    data = data.model_copy(update={"test_split": source.split}) if source.split else data
    recipe = predictor.recipe.model_copy(update={"data": data})
    datasets = Datasets(recipe)
    with TemporaryDirectory() as temporary:
        for name, embedder in predictor.features.embedders.items():
            config = source_recipe.inputs.get(name)
            if embedder.reader.path is None and isinstance(config, FeaturesConfig) and config.features is not None:
                embedder.reader.path = Path(config.features)
            elif embedder.reader.path is None:
                store = Path(temporary) / name
                pictures = pictures_of(datasets.dataset_of(step), datasets.scored_by(step))
                extractor = predictor.features.extractor(name)
                extract(extractor, [*pictures.values()], store, progress=progress)
                embedder.reader.path = store
        prepare_inputs(predictor.model, recipe, datasets)
        yield predictor, recipe, datasets.scored_by(step)


def predictions_of(predictor: Predictor, examples: Sequence[Example], progress: Progress) -> list[Any]:
    """The best text, or the prediction, of each example. Raises DataError if an input of an example is missing."""
    inputs = tuple(predictor.names.inputs)
    for name in inputs:
        if name in predictor.features and predictor.features.embedders[name].reader.path is None:
            predictor.features.extractor(name)  # raises for an extractor that is not available or differs
            raise DataError(
                f"{predictor.where}: the run has no features of this extractor of '{name}'; give the features with "
                f"--set inputs.{name}.features=FILE"
            )
    outcomes: list[Any] = []
    with progress.task(f"{predictor.step}: predicting", len(examples), "examples") as advance:
        for first in range(0, len(examples), AT_ONCE):
            batch = examples[first : first + AT_ONCE]
            if predictor.kind == "text":
                outcomes += [best_first[0] for best_first in predictor.generate(batch)]
            else:
                outcomes += predict(predictor.model, batch, predictor.objective, inputs)
            advance(len(batch))
    return outcomes
