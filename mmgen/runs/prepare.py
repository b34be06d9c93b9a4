"""Before a run's first step: what it lacks on this machine, and the extraction of features."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..configs import BackboneConfig, ExtractorConfig, FeaturesConfig
from ..data.datasets import Datasets
from ..downloads.get import RECORD, Request
from ..downloads.hub import Network, missing_networks
from ..downloads.sources import published_set
from ..errors import DataError, MmgenError
from ..features.extract import extract
from ..features.store import FeatureStore
from ..parts import Picture
from ..progress import Progress
from ..recipe.layers import Layered
from ..recipe.tables import Recipe, parts_in, placed_parts
from ..recipe.weight_files import weight_errors
from ..storage.model_files import features_file, inputs_of
from ..storage.run_folder import RunFolder
from ..training.distributed import Processes


def missing_parts(recipe: Recipe, steps: Sequence[str], layers: Layered, folder: RunFolder | None = None) -> list[str]:
    """A line for everything besides data that these steps of the recipe need and lack: what, where it is named, and
    where to get it. `folder`: of the run, whose features and initial weights need not be made again."""
    inputs, lines = inputs_of(recipe, steps), list[str]()
    files = feature_files(recipe, steps, folder) if folder and folder.fingerprint() else {}
    extracted = {name for name, path in files.items() if path.exists()}
    for path, part in placed_parts(recipe):
        if path[0] == "inputs" and (path[1] not in inputs or (path[2:] and path[1] in extracted)):
            continue
        lines += [f"{layers.opening((*path, key))}{problem}" for key, problem in part.missing_here().items() if problem]
        if isinstance(part, FeaturesConfig) and part.features is not None:
            try:
                FeatureStore(part.features)
            except MmgenError as error:
                lines.append(f"{layers.opening((*path, 'features'))}{error}")
    return [*lines, *weight_errors(recipe, [step for step in steps if not (folder and folder.begun(step))], layers)]


def to_fetch(recipe: Recipe, steps: Sequence[str], layers: Layered) -> tuple[list[Request], list[Network]]:
    """What a recipe of published sets lacks: those that these steps read and that are not complete, and networks of
    the hub. Nothing if anything else is missing, which nobody can fetch, or in one of several processes."""
    configs = [recipe.data, *(data for step in steps for data in recipe.steps[step].data)]
    sets = [*dict.fromkeys(filter(None, (config.download() for config in configs)))]
    if not sets or int(os.environ.get("WORLD_SIZE", 1)) > 1:
        return [], []
    requests = [Request(**vars(wanted), source=published_set(wanted.name)) for wanted in sets if not wanted.complete]
    requests = [request for request in requests if request.missing()]
    parts = [part for part in parts_in(recipe) if isinstance(part, BackboneConfig | ExtractorConfig)]
    names = dict.fromkeys(filter(None, (part.base_model() for part in parts)))
    networks = missing_networks(names, sets[0].folder / RECORD)
    if (requests or networks) and missing_parts(recipe, steps, layers):
        return [], []
    return requests, networks


@contextlib.contextmanager
def with_missing_parts(recipe: Recipe, steps: Sequence[str], layers: Layered) -> Iterator[None]:
    """Adds what else is missing to an error about the data."""
    try:
        yield
    except DataError as error:
        raise DataError("\n".join([str(error), *missing_parts(recipe, steps, layers)])) from None


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
    recipe: Recipe, files: Mapping[str, Path], datasets: Datasets, processes: Processes, progress: Progress
) -> None:
    """Extract the features of these inputs, by input, as far as their files lack pictures."""
    for name, path in files.items():
        config = recipe.inputs[name]
        assert isinstance(config, FeaturesConfig) and config.extractor is not None  # see `feature_files`
        if processes.is_main_process and not _has_all(path, pictures := list(datasets.pictures())):
            extractor = config.extractor.build()
            summary = extract(extractor, pictures, path, progress=progress)  # another seed may be extracting
            for key, reason in summary.broken:  # which may have been repaired when the run goes on
                progress.say(f"{name}: skipped picture '{key}': {reason}")
            if summary.failure:
                raise DataError(summary.failure)
        processes.wait_for_everyone()


def _has_all(path: Path, pictures: Sequence[Picture]) -> bool:
    with contextlib.suppress(DataError):  # there is none, or the extraction says what is wrong with it
        store = FeatureStore(path)
        return all(picture.key in store for picture in pictures)
    return False
