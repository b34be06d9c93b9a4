"""What a run lacks on this machine: data, weights, features. One list of everything, before anything is built."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from ..configs import FeaturesConfig
from ..errors import DataError, MmgenError
from ..features.stores import open_store
from ..recipe.layers import Layered
from ..recipe.tables import Recipe, placed_parts
from ..recipe.weight_files import start_errors
from ..storage.run_folder import RunFolder
from ..storage.step_weights import inputs_of
from .prepare import feature_files


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
                with contextlib.closing(open_store(part.features)):
                    pass
            except MmgenError as error:
                lines.append(f"{layers.opening((*path, 'features'))}{error}")
    return [*lines, *start_errors(recipe, [step for step in steps if not (folder and folder.begun(step))], layers)]


@contextlib.contextmanager
def with_missing_parts(recipe: Recipe, steps: Sequence[str], layers: Layered) -> Iterator[None]:
    """Adds what else is missing to an error about the data."""
    try:
        yield
    except DataError as error:
        raise DataError("\n".join([str(error), *missing_parts(recipe, steps, layers)])) from None
