"""What a run lacks on this machine: data, weights, features. One list of everything, before anything is built."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from ..configs import EmbedderConfig, FeaturesConfig
from ..errors import DataError, MmgenError
from ..features.store import FeatureStore
from ..recipe.layers import Layered
from ..recipe.tables import Recipe, placed_parts
from ..recipe.weight_files import start_errors
from ..storage.model_files import features_file
from ..storage.run_folder import RunFolder
from ..storage.step_weights import inputs_of


def missing_parts(recipe: Recipe, steps: Sequence[str], layers: Layered, folder: RunFolder | None = None) -> list[str]:
    """A line for everything besides data that these steps of the recipe need and lack: what, where it is named, and
    where to get it. `folder`: of the run, whose features and initial weights need not be made again."""
    inputs, lines = inputs_of(recipe, steps), list[str]()
    extracted = {name for name in inputs if folder is not None and _is_extracted(recipe.inputs[name], recipe, folder)}
    for path, part in placed_parts(recipe):
        if path[0] == "inputs" and (path[1] not in inputs or (path[2:] and path[1] in extracted)):
            continue
        lines += [f"{layers.opening((*path, key))}{problem}" for key, problem in part.missing_here().items() if problem]
        if isinstance(part, FeaturesConfig) and part.features is not None:
            try:
                FeatureStore(part.features)
            except MmgenError as error:
                lines.append(f"{layers.opening((*path, 'features'))}{error}")
    return [*lines, *start_errors(recipe, [step for step in steps if not (folder and folder.begun(step))], layers)]


def _is_extracted(config: EmbedderConfig, recipe: Recipe, folder: RunFolder) -> bool:
    """Whether the run has extracted the features of an input."""
    if not isinstance(config, FeaturesConfig) or config.extractor is None or config.features is not None:
        return False
    return folder.fingerprint() is not None and features_file(config.extractor, recipe, folder).exists()


@contextlib.contextmanager
def with_missing_parts(recipe: Recipe, steps: Sequence[str], layers: Layered) -> Iterator[None]:
    """Adds what else is missing to an error about the data."""
    try:
        yield
    except DataError as error:
        raise DataError("\n".join([str(error), *missing_parts(recipe, steps, layers)])) from None
