"""An export with the data of a recipe, for commands that need examples: its step, its examples, its predictions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ..configs import FeaturesConfig
from ..data.datasets import Datasets, pictures_of
from ..errors import DataError, RunError
from ..evaluation.answers import predict
from ..examples import Example, Generation, Prediction
from ..features.extract import extract
from ..progress import Progress
from ..recipe.load import load
from ..recipe.tables import Recipe
from ..registry import installed
from ..storage.exports import is_export
from ..storage.model_files import prepare_inputs
from .hub import find_folder
from .load import open_model
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


@dataclass(frozen=True)
class WithData:
    """An export with data.

    folder    the export
    recipe    the recipe of its step, with the data of the other recipe
    datasets  the data sets of `recipe`
    stores    input -> the file with the features of the examples' pictures
    """

    folder: Path
    recipe: Recipe
    datasets: Datasets
    stores: dict[str, Path]
    sets: tuple[str, ...] = ()

    def load(self) -> Predictor:
        """The export's predictor, which reads the features of the examples. Each call reads the weights."""
        predictor = open_model(self.folder, None, self.sets)
        for name, store in self.stores.items():
            predictor.features.embedders[name].reader.path = store
        prepare_inputs(predictor.model, predictor.recipe, self.datasets)
        return predictor

    @property
    def step(self) -> str:
        return next(iter(self.recipe.steps))

    @property
    def examples(self) -> Sequence[Example]:
        """The examples of the split. Raises DataError if there are none."""
        return self.datasets.scored_by(self.step)


@contextlib.contextmanager
def with_data(
    where: str | Path, source: DataSource, sets: Sequence[str] = (), progress: Progress | None = None
) -> Iterator[WithData]:
    """An export with the data of a recipe. Features of pictures are extracted by the export's own networks into a
    temporary folder, or taken from the file that the recipe names for the input of the same name.

    where  an export, or a name of the hub
    sets   overrides of the export, see `load_run`

    A step of the recipe with the name of the export's step chooses the data, if that step is scored on its own data.
    Raises RunError for a run folder, and RecipeError, DataError, PluginError."""
    folder = find_folder(where)
    if not is_export(folder):
        raise RunError(f"{where}: --data is for exports; leave it out for a run, which has its own data")
    predictor = open_model(folder, None, sets)
    step, source_recipe = predictor.step, load(source.path, installed(), source.profile, source.sets)[0]
    data = (source_recipe.scored_data(step) if step in source_recipe.steps else None) or source_recipe.data
    data = data.model_copy(update={"test_split": source.split}) if source.split else data
    steps = {step: predictor.recipe.steps[step].model_copy(update={"evaluate": True})}
    recipe = predictor.recipe.model_copy(update={"data": data, "steps": steps})
    datasets = Datasets(recipe)
    with TemporaryDirectory() as temporary:
        stores = {}
        for name, embedder in predictor.features.embedders.items():
            config = source_recipe.inputs.get(name)
            if embedder.reader.path is not None:
                continue
            if isinstance(config, FeaturesConfig) and config.features is not None:
                stores[name] = Path(config.features)
                continue
            stores[name] = Path(temporary) / f"{name}.h5"
            pictures = pictures_of(datasets.dataset_of(step), datasets.scored_by(step))
            extractor = predictor.features.extractor(name)
            extract(extractor, list(pictures.values()), stores[name], progress=progress, label=f"{name}: features")
        yield WithData(folder, recipe, datasets, stores, tuple(sets))


def predictions_of(
    predictor: Predictor, examples: Sequence[Example], progress: Progress
) -> Sequence[Generation] | Sequence[Prediction]:
    """The best text, or the prediction, of each example. Raises DataError if an input of an example is missing."""
    inputs = tuple(predictor.names.inputs)
    for name in inputs:
        if name in predictor.features and predictor.features.embedders[name].reader.path is None:
            predictor.features.extractor(name)  # raises for an extractor that is not available or differs
            raise DataError(
                f"{predictor.where}: the run has no features of this extractor of '{name}'; give the features with "
                f"--set inputs.{name}.features=FILE"
            )
    texts: list[Generation] = []
    predicted: list[Prediction] = []
    with progress.task(f"{predictor.step}: predicting", len(examples), "examples") as advance:
        for first in range(0, len(examples), AT_ONCE):
            batch = examples[first : first + AT_ONCE]
            if predictor.kind == "text":
                texts += [best_first[0] for best_first in predictor.generate(batch)]
            else:
                predicted += predict(predictor.model, batch, predictor.objective, inputs)
            advance(len(batch))
    return texts or predicted
