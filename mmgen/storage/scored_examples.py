"""The examples that a run is scored on, saved in its folder, so that the run can be reported, judged and scored without
its data.

examples.jsonl         of the recipe's data
examples/<step>.jsonl  of a step's data set that the step is scored on; named after the first step with this data set
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

from ..configs import DatasetConfig
from ..data.datasets import ScoredOn
from ..errors import DataError, RunError
from ..examples import All, Example
from ..files import read_table, write_text
from ..parts import Dataset, Picture
from ..recipe.tables import Recipe

FILE = "examples.jsonl"


def keep(recipe: Recipe, datasets: ScoredOn, folder: Path) -> None:
    """Save the examples that the steps are scored on in a run's folder, except examples that JSON cannot represent
    (they come from generated data sets)."""
    first = {_data_of(recipe, name)[1]: name for name in reversed(recipe.steps) if recipe.steps[name].evaluate}
    for file, name in first.items():
        examples = datasets.scored_by(name)
        with contextlib.suppress(TypeError, ValueError):
            lines = [json.dumps(asdict(example)) for example in examples]
            if [_parse_example(line) for line in lines] == [*examples]:
                write_text(folder / file, "".join(f"{line}\n" for line in lines))


def _data_of(recipe: Recipe, step: str) -> tuple[DatasetConfig, str]:
    """The data that a step, or without a name the recipe, is scored on, and the file with the examples."""
    if not step or (data := recipe.scored_data(step)) is None:
        return recipe.data, FILE
    return data, f"examples/{next(name for name in recipe.steps if recipe.scored_data(name) == data)}.jsonl"


class ScoredExamples:
    """The examples that the steps of a run in `folder` are scored on; step "" is the recipe's data."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self._recipe, self._folder = recipe, folder
        self._datasets: dict[str, Dataset] = {}

    def dataset_of(self, step: str) -> Dataset:
        config, file = _data_of(self._recipe, step)
        if file not in self._datasets:
            path = self._folder / file
            self._datasets[file] = SavedExamples(config, path) if path.exists() else config.build()
        return self._datasets[file]

    def scored_by(self, step: str) -> Sequence[Example]:
        return self.dataset_of(step).split(_data_of(self._recipe, step)[0].test_split)


class SavedExamples(Dataset):
    """A data set whose test split is that of a run's copy. Anything else is asked of the data set itself, which may be
    gone: then there is no other split, and `pictures` raises DataError."""

    def __init__(self, config: DatasetConfig, file: Path) -> None:
        self._config, self._file = config, file

    @cached_property
    def _data(self) -> Dataset:
        dataset = self._config.build()
        dataset.split(self._config.test_split)  # raises DataError if its files are gone
        return dataset

    @cached_property
    def _examples(self) -> tuple[Example, ...]:
        try:
            with self._file.open(encoding="utf-8", newline="\n") as lines:
                return tuple(map(_parse_example, lines))
        except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
            raise RunError(f"{self._file}: damaged: {error}; copy the file from where the run was made") from None

    def splits(self) -> tuple[str, ...]:
        try:
            return self._data.splits()
        except DataError:
            return (self._config.test_split,)

    def split(self, name: str) -> Sequence[Example]:
        return self._examples if name == self._config.test_split else self._data.split(name)

    def describe(self) -> dict[str, Any]:
        """The description of the data set; if it is gone, the saved one, if it is the recipe's."""
        with contextlib.suppress(DataError):
            return self._data.describe()
        path = self._file.parent / "data.json"
        saved = read_table(path) if path.exists() else {}
        return {name: value for name, value in saved.items() if name != "fingerprint"}

    def pictures(self) -> Iterable[Picture]:
        return self._data.pictures()


def _parse_example(line: str) -> Example:
    """Raises various errors for a line of a different shape."""
    table = json.loads(
        line, object_hook=lambda table: All(_with_tuples(table["values"])) if [*table] == ["values"] else table
    )
    inputs, labels = _with_tuples(table["inputs"]), _with_tuples(table["labels"])
    return Example(table["id"], inputs, tuple(table["targets"]), table["facts"], labels)


def _with_tuples(value: Any) -> Any:
    """A value as data sets give it, with tuples instead of lists."""
    if isinstance(value, dict):
        return {name: _with_tuples(item) for name, item in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value
