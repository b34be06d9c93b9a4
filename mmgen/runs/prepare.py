"""Before a run's first step: the files of features, and their extraction."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..configs import FeaturesConfig
from ..data.datasets import Datasets
from ..features import extract
from ..features.store import FeatureStore
from ..features.writer import remove_leftovers
from ..parts import Picture
from ..progress import Progress
from ..recipe.tables import Recipe
from ..registry import built
from ..storage.model_files import features_file
from ..storage.run_folder import RunFolder
from ..storage.step_weights import inputs_of
from ..training.distributed import Processes


def with_inputs_of(recipe: Recipe, only: Sequence[str]) -> Recipe:
    """The recipe with the inputs that these steps and those before them read; () means all steps."""
    names = inputs_of(recipe, recipe.ordered(tuple(only)))
    return recipe.model_copy(update={"inputs": {name: recipe.inputs[name] for name in names}})


def feature_files(recipe: Recipe, only: Sequence[str], folder: RunFolder) -> dict[str, Path]:
    """The file of every input of these steps whose features a run extracts. It is beside the folders of the seeds,
    which share it."""
    return {
        name: features_file(config.extractor, recipe, folder)
        for name, config in with_inputs_of(recipe, only).inputs.items()
        if isinstance(config, FeaturesConfig) and config.extractor is not None and config.features is None
    }


def with_features(recipe: Recipe, files: Mapping[str, Path]) -> Recipe:
    """The recipe with these files of features, by input."""
    read = {name: recipe.inputs[name].model_copy(update={"features": path}) for name, path in files.items()}
    return recipe.model_copy(update={"inputs": {**recipe.inputs, **read}})


def fill_stores(
    recipe: Recipe, files: Mapping[str, Path], datasets: Datasets, accelerator: Processes, progress: Progress
) -> None:
    """Extract the features of these inputs, by input."""
    for name, path in files.items():
        config = recipe.inputs[name]
        assert isinstance(config, FeaturesConfig) and config.extractor is not None  # see `feature_files`
        if accelerator.is_main_process and has_all_pictures(path, pictures := list(datasets.pictures())):
            remove_leftovers(path)
        elif accelerator.is_main_process:  # broken pictures may have been repaired
            summary = extract.extract(
                built(config.extractor, config.extractor.build), pictures, path, progress=progress, wait=True
            )  # another seed may be extracting
            for key, reason in summary.broken:
                progress.say(f"{name}: skipped picture '{key}': {reason}")
        accelerator.wait_for_everyone()


def has_all_pictures(path: Path, pictures: Sequence[Picture]) -> bool:
    """Whether a store exists and contains these pictures."""
    if not path.exists():
        return False
    with contextlib.closing(FeatureStore(path)) as store:
        return all(picture.key in store for picture in pictures)
