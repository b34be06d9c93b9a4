"""What a run's walk through its data gave, saved for other seeds and restarts; the parts and files it depends on.

The files are beside the folders of the seeds, which share them:

data/examples-<hash>.safetensors   the fingerprint of all examples, which are checked
data/sizes-<hash>.safetensors      the sizes of a step's training examples, none of which lacks anything

A file is used while everything it was made from is unchanged: data, settings that matter, the files of parts (features,
tokenizers), versions and the source files of the parts' packages.
Otherwise it is written again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from ..configs import PartConfig
from ..data.datasets import Datasets
from ..data.example_sizes import Measures
from ..errors import DataError, RunError
from ..features.multi_file import files_of
from ..files import file_fingerprint
from ..progress import Progress
from ..recipe.paths import paths_in
from ..recipe.tables import GENERATOR, Recipe
from .environment import environment, providers, source_digest
from .run_folder import RunFolder
from .weights import read_tensors, write_tensors

FOLDER = "data"
MADE_FROM = "made from"
DAMAGED = "damaged"


class DataCache:
    """The files of a run's data. Other processes may read and write the same files; each writes complete ones."""

    def __init__(self, folder: RunFolder, progress: Progress) -> None:
        self.folder, self.progress = folder.path.parent / FOLDER, progress
        self._outdated: set[Path] = set()  # steps with equal inputs share a file
        self._written: set[Path] = set()

    def recall_examples(self, datasets: Datasets) -> None:
        """Trust the data sets if their own fingerprints are those of the file."""
        identities = datasets.identities()
        if identities is not None:
            path, made_from = self._examples_file(datasets.recipe), _made_from(datasets.recipe, identities)
            saved = self._read_file(path, made_from)
            if saved and "fingerprint" not in saved[1]:
                self._set_aside(path, DAMAGED)
            elif saved:
                datasets.trust(saved[1]["fingerprint"])

    def keep_examples(self, datasets: Datasets) -> None:
        """Write the fingerprint of all examples, unless it comes from the file."""
        identities = datasets.identities()
        if identities is None or datasets.trusted:
            return
        with contextlib.suppress(DataError):  # two sources of a step share an id, which the next start must find again
            for step in datasets.recipe.steps:
                datasets.sources(step)
            path, made_from = self._examples_file(datasets.recipe), _made_from(datasets.recipe, identities)
            self._write_file(path, {}, {"fingerprint": datasets.fingerprint()}, made_from)

    def recall_sizes(self, recipe: Recipe, step: str, datasets: Datasets) -> tuple[dict[str, Measures], Any] | None:
        """The sizes of the training examples of a step, by source, and the remarks written with them; None if the file
        is missing, out of date or damaged."""
        path = self._sizes_file(recipe, step)
        saved = self._read_file(path, _made_from(recipe, datasets.fingerprint(), step))
        if saved is None:
            return None
        tensors, about = saved
        try:
            tables, remarks = json.loads(about["sources"]), json.loads(about["remarks"])
            if not isinstance(tables, dict):
                raise ValueError
            columns = {
                name: {key.partition(".")[2]: value for key, value in tensors.items() if key.startswith(f"{number}.")}
                for number, name in enumerate(tables)
            }
            return {name: Measures.from_columns(columns[name], tables[name]) for name in tables}, remarks
        except (ValueError, LookupError, TypeError, OverflowError, RecursionError):  # another program has written it
            self._set_aside(path, DAMAGED)
            return None

    def keep_sizes(
        self, recipe: Recipe, step: str, datasets: Datasets, measures: Mapping[str, Measures], remarks: Any
    ) -> None:
        tensors = {
            f"{number}.{name}": column
            for number, source in enumerate(measures.values())
            for name, column in source.columns().items()
        }
        tables = {name: source.table() for name, source in measures.items()}
        about = {"sources": json.dumps(tables), "remarks": json.dumps(remarks)}
        made_from = _made_from(recipe, datasets.fingerprint(), step)
        self._write_file(self._sizes_file(recipe, step), tensors, about, made_from)

    def _examples_file(self, recipe: Recipe) -> Path:
        settings = [
            _as_json(recipe.data),
            *(_as_json(source) for step in recipe.steps for source in _sources_of(recipe, step)),
        ]
        return self.folder / f"examples-{_hash(settings)}.safetensors"

    def _sizes_file(self, recipe: Recipe, step: str) -> Path:
        settings = recipe.steps[step]
        tables = [_as_json(part) for part in (recipe.data, *_sources_of(recipe, step), *_parts_for_sizes(recipe, step))]
        return self.folder / f"sizes-{_hash([settings.inputs, settings.objectives, *tables])}.safetensors"

    def _read_file(self, path: Path, made_from: Any) -> tuple[dict[str, Tensor], dict[str, str]] | None:
        if not path.exists() or path in self._outdated:
            return None
        try:
            tensors, about = read_tensors(path)
            if about[MADE_FROM] == _hash(made_from):
                return tensors, about
            reason = "the data, files of parts or versions have changed"
        except (RunError, KeyError):
            reason = DAMAGED
        self._set_aside(path, reason)
        return None

    def _set_aside(self, path: Path, reason: str) -> None:
        self.progress.say(f"{path}: {reason}; every example is read again")
        self._outdated.add(path)

    def _write_file(self, path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, str], made_from: Any) -> None:
        if path in self._written:
            return
        self._written.add(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_tensors(path, tensors, {**about, MADE_FROM: _hash(made_from)})
        except (OSError, RunError) as error:
            self.progress.say(f"{error}; the next start reads every example again")


def _made_from(recipe: Recipe, data: Any, step: str = "") -> list[Any]:
    """The data, versions, sources, and the states of the files that the parts of a step read: features, tokenizers."""
    paths = [path for part in (_parts_for_sizes(recipe, step) if step else ()) for path in paths_in(part)]
    files = [file for path in paths for file in _files_at(path)]
    return [data, environment(providers(recipe))["versions"], source_digest(recipe), file_fingerprint(files)]


def _parts_for_sizes(recipe: Recipe, step: str) -> list[PartConfig]:
    """The parts of a step on which the sizes of its examples depend."""
    settings = recipe.steps[step]
    generators = [recipe.generator] if recipe.generator is not None else []
    objectives = [recipe.objectives[name] for name in settings.objectives if name != GENERATOR]
    return [recipe.backbone, *generators, *(recipe.inputs[name] for name in settings.inputs), *objectives]


def _files_at(path: Path) -> list[Path]:
    """The files at a path: a file, those of a folder, or those that match a pattern."""
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.is_file())
    return [file for file in files_of(path) or [path] if file.is_file()]


def _sources_of(recipe: Recipe, step: str) -> list[Any]:
    return [*recipe.sources(step).values()]


def _as_json(config: Any) -> Any:
    return config.model_dump(mode="json")


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]
