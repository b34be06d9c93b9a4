"""The examples that a run is scored on, saved in its folder, so that the run can be reported, judged and scored without
its data.

examples.jsonl         of the recipe's data
examples/<step>.jsonl  of a step's data set that the step is scored on; named after the first step with this data set
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..configs import DatasetConfig
from ..data.datasets import ScoredOn
from ..errors import DataError, RunError
from ..files import read_table, write_text
from ..parts import Dataset
from ..recipe.tables import Recipe
from ..tensors import All, Example

FILE = "examples.jsonl"
log = logging.getLogger("mmgen")


def keep(recipe: Recipe, datasets: ScoredOn, folder: Path) -> None:
    """Save the examples that the steps are scored on in a run's folder, except examples that JSON cannot represent
    (they come from generated data sets)."""
    first = {
        _examples_file(recipe, name, folder): name for name in reversed(recipe.steps) if recipe.steps[name].evaluate
    }
    for file, name in first.items():
        examples = datasets.scored_by(name)
        try:
            lines = [json.dumps(asdict(example), ensure_ascii=True) for example in examples]
            reversible = [_parse_example(line) for line in lines] == [*examples]
        except (TypeError, ValueError):
            reversible = False
        if reversible:
            write_text(file, "".join(f"{line}\n" for line in lines))


def _examples_file(recipe: Recipe, step: str, folder: Path) -> Path:
    """The file with the examples that a step is scored on."""
    step_data = recipe.scored_data(step)
    if step_data is None:
        return folder / FILE
    return folder / "examples" / f"{next(name for name in recipe.steps if recipe.scored_data(name) == step_data)}.jsonl"


class ScoredExamples:
    """The examples that the steps of a run in `folder` are scored on, loaded on demand: from the data sets, or from the
    run's copy if the data sets are missing. Raises DataError if both are missing."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self._recipe, self._folder = recipe, folder
        self._datasets: dict[Path, Dataset] = {}

    def dataset_of(self, step: str) -> Dataset:
        file = _examples_file(self._recipe, step, self._folder)
        if file not in self._datasets:
            self._datasets[file] = _load_or_copy(self._data_of(step), file, self._folder)
        return self._datasets[file]

    def scored_by(self, step: str) -> Sequence[Example]:
        return self.dataset_of(step).split(self._data_of(step).test_split)

    def _data_of(self, step: str) -> DatasetConfig:
        return self._recipe.scored_data(step) or self._recipe.data


def dataset_of(recipe: Recipe, folder: Path) -> Dataset:
    """The recipe's data set, or the run's copy of its examples if the data set is missing. Raises DataError."""
    return _load_or_copy(recipe.data, folder / FILE, folder)


def _load_or_copy(config: DatasetConfig, file: Path, folder: Path) -> Dataset:
    try:
        dataset = config.build()
        dataset.split(config.test_split)
        return dataset
    except DataError as error:
        if not file.exists():
            raise
        reason = str(error).partition("\n")[0].rstrip(":")
        log.warning("%s: %s; using the run's copy of its examples, which has no pictures", folder, reason)
        return SavedExamples(config.test_split, file, reason)


class SavedExamples(Dataset):
    """The one split that steps are scored on. `why`: the reason why the data set itself is not available."""

    def __init__(self, split: str, file: Path, why: str) -> None:
        self._name, self._file, self._why = split, file, why
        self._examples: tuple[Example, ...] | None = None

    def splits(self) -> tuple[str, ...]:
        return (self._name,)

    def split(self, name: str) -> Sequence[Example]:
        if name != self._name:
            raise DataError(f"{self._file}: has only the split '{self._name}'; {self._why}")
        if self._examples is None:
            try:
                text = self._file.read_text(encoding="utf-8")
                self._examples = tuple(map(_parse_example, io.StringIO(text)))
            except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
                reason = getattr(error, "strerror", None) or error
                raise RunError(f"{self._file}: damaged: {reason}; copy the file from where the run was made") from None
        return self._examples

    def describe(self) -> dict[str, Any]:
        """The saved description of the data set, if it is the recipe's."""
        path = self._file.parent / "data.json"
        about = read_table(path) if path.exists() else {}
        return {name: value for name, value in about.items() if name != "fingerprint"}

    def pictures(self):
        raise DataError(f"no pictures: {self._why}")


def _parse_example(line: str) -> Example:
    """Raises various errors for a line of a different shape."""
    table = json.loads(line)
    inputs = {name: _parse_input(value) for name, value in table["inputs"].items()}
    labels = {name: _with_tuples(value) for name, value in table["labels"].items()}
    return Example(table["id"], inputs, tuple(table["targets"]), table["facts"], labels)


def _parse_input(value: Any) -> Any:
    return All(_with_tuples(value["values"])) if isinstance(value, dict) else _with_tuples(value)


def _with_tuples(value: Any) -> Any:
    """A value as data sets give it, with tuples instead of lists."""
    if isinstance(value, dict):
        return {name: _with_tuples(item) for name, item in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value
