"""The examples that a run is scored on, kept in its folder: it can be reported on, judged and scored where its data are
not."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..data.checked import example_problem
from ..errors import DataError, RunError
from ..files import read_table, write_text
from ..parts import Dataset
from ..recipe.tables import Recipe
from ..tensors import Example

FILE = "examples.jsonl"
log = logging.getLogger("mmgen")


def keep(examples: Sequence[Example], folder: Path) -> None:
    """Write the examples into a run's folder; not where JSON cannot hold one (such data sets are made, not read)."""
    try:
        lines = [json.dumps(asdict(example), ensure_ascii=True) for example in examples]
        if [_example(line) for line in lines] != [*examples]:
            return
    except (TypeError, ValueError):
        return
    write_text(folder / FILE, "".join(f"{line}\n" for line in lines))


def dataset_of(recipe: Recipe, folder: Path) -> Dataset:
    """The data set of a run; where its files are not there, the examples that the run keeps. Raises DataError."""
    try:
        dataset = recipe.data.build()
        dataset.split(recipe.data.evaluate)
        return dataset
    except DataError as error:
        if not (folder / FILE).exists():
            raise
        reason = str(error).partition("\n")[0].rstrip(":")
        log.warning("%s: %s; the run's own copy of its examples is used, which has no pictures", folder, reason)
        return KeptExamples(recipe.data.evaluate, folder, reason)


class KeptExamples(Dataset):
    """The one split that a run is scored on. `why`: why the data set itself cannot be had."""

    def __init__(self, split: str, folder: Path, why: str) -> None:
        self._name, self._folder, self._why = split, folder, why
        self._examples: tuple[Example, ...] | None = None

    def splits(self) -> tuple[str, ...]:
        return (self._name,)

    def split(self, name: str) -> Sequence[Example]:
        if name != self._name:
            raise DataError(f"{self._folder}: keeps the examples of '{self._name}' alone, and {self._why}")
        if self._examples is None:
            path = self._folder / FILE
            try:
                lines = path.read_text(encoding="utf-8").splitlines()
                self._examples = tuple(map(_example, lines))
            except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
                raise RunError(f"{path}: damaged: {error}; copy it from where the run was made") from None
        return self._examples

    def describe(self) -> dict[str, Any]:
        about = read_table(self._folder / "data.json")
        return {name: value for name, value in about.items() if name != "fingerprint"}

    def pictures(self):
        raise DataError(f"no pictures: {self._why}")


def _example(line: str) -> Example:
    """Raises what a line of another shape raises."""
    table = json.loads(line)
    inputs = {name: tuple(value) if isinstance(value, list) else value for name, value in table["inputs"].items()}
    found = Example(table["id"], inputs, tuple(table["targets"]), table["facts"])
    if wrong := example_problem(found):
        raise ValueError(wrong)
    return found
