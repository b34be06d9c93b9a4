"""The examples that a run is scored on, kept in its folder: it can be reported on, judged and scored where its data are
not.

examples.jsonl         of the recipe's data
examples/<step>.jsonl  of data that a step brings and is scored on; the first of the steps that share them
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..configs import DatasetConfig
from ..data.checked import example_problem
from ..data.datasets import ScoredOn
from ..errors import DataError, RunError
from ..files import read_table, write_text
from ..parts import Dataset
from ..recipe.tables import Recipe
from ..tensors import All, Example

FILE = "examples.jsonl"
log = logging.getLogger("mmgen")


def keep(recipe: Recipe, datasets: ScoredOn, folder: Path) -> None:
    """Write what the steps are scored on into a run's folder; not where JSON cannot hold an example (such data sets are
    made, not read)."""
    first = {_file(recipe, name, folder): name for name in reversed(recipe.steps) if recipe.steps[name].evaluate}
    for file, name in first.items():
        examples = datasets.scored_by(name)
        try:
            lines = [json.dumps(asdict(example), ensure_ascii=True) for example in examples]
            whole = [_example(line) for line in lines] == [*examples]
        except (TypeError, ValueError):
            whole = False
        if whole:
            write_text(file, "".join(f"{line}\n" for line in lines))


def _file(recipe: Recipe, step: str, folder: Path) -> Path:
    """Where the examples are kept that a step is scored on."""
    own = recipe.own_data(step)
    if own is None:
        return folder / FILE
    return folder / "examples" / f"{next(name for name in recipe.steps if recipe.own_data(name) == own)}.jsonl"


class ScoredExamples:
    """What the steps of a run in `folder` are scored on, found when first asked for: the data sets themselves, or what
    the run keeps where their files are not there. Raises DataError where neither is."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self._recipe, self._folder = recipe, folder
        self._found: dict[Path, Dataset] = {}

    def dataset_of(self, step: str) -> Dataset:
        file = _file(self._recipe, step, self._folder)
        if file not in self._found:
            self._found[file] = _there(self._config(step), file, self._folder)
        return self._found[file]

    def scored_by(self, step: str) -> Sequence[Example]:
        return self.dataset_of(step).split(self._config(step).evaluate)

    def _config(self, step: str) -> DatasetConfig:
        return self._recipe.own_data(step) or self._recipe.data


def dataset_of(recipe: Recipe, folder: Path) -> Dataset:
    """The recipe's data set; where its files are not there, the examples that the run keeps. Raises DataError."""
    return _there(recipe.data, folder / FILE, folder)


def _there(config: DatasetConfig, file: Path, folder: Path) -> Dataset:
    try:
        dataset = config.build()
        dataset.split(config.evaluate)
        return dataset
    except DataError as error:
        if not file.exists():
            raise
        reason = str(error).partition("\n")[0].rstrip(":")
        log.warning("%s: %s; the run's own copy of its examples is used, which has no pictures", folder, reason)
        return KeptExamples(config.evaluate, file, reason)


class KeptExamples(Dataset):
    """The one split that steps are scored on. `why`: why the data set itself cannot be had."""

    def __init__(self, split: str, file: Path, why: str) -> None:
        self._name, self._file, self._why = split, file, why
        self._examples: tuple[Example, ...] | None = None

    def splits(self) -> tuple[str, ...]:
        return (self._name,)

    def split(self, name: str) -> Sequence[Example]:
        if name != self._name:
            raise DataError(f"{self._file}: keeps the examples of '{self._name}' alone, and {self._why}")
        if self._examples is None:
            try:
                lines = self._file.read_text(encoding="utf-8").splitlines()
                self._examples = tuple(map(_example, lines))
            except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
                raise RunError(f"{self._file}: damaged: {error}; copy it from where the run was made") from None
        return self._examples

    def describe(self) -> dict[str, Any]:
        """What the data set said of itself, where it is the recipe's."""
        path = self._file.parent / "data.json"
        about = read_table(path) if path.exists() else {}
        return {name: value for name, value in about.items() if name != "fingerprint"}

    def pictures(self):
        raise DataError(f"no pictures: {self._why}")


def _example(line: str) -> Example:
    """Raises what a line of another shape raises."""
    table = json.loads(line)
    inputs = {name: _input(value) for name, value in table["inputs"].items()}
    labels = {name: _tuples(value) for name, value in table["labels"].items()}
    found = Example(table["id"], inputs, tuple(table["targets"]), table["facts"], labels)
    if wrong := example_problem(found):
        raise ValueError(wrong)
    return found


def _input(value: Any) -> Any:
    return All(_tuples(value["values"])) if isinstance(value, dict) else _tuples(value)


def _tuples(value: Any) -> Any:
    """A value as data sets give them: what several values make is a tuple."""
    if isinstance(value, dict):
        return {name: _tuples(each) for name, each in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
