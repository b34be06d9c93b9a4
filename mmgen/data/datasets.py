"""The data sets of a recipe, built once: splits, sources, texts, vocabularies, pictures; one walk for the fingerprint
and unique ids."""

from __future__ import annotations

import hashlib
from array import array
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import islice
from typing import Protocol

import numpy as np

from ..configs import SOURCE_KEYS, DatasetConfig
from ..errors import DataError
from ..examples import Example
from ..parts import Dataset, Picture
from ..recipe.tables import Recipe
from .collate import Source
from .seeds import hash_id
from .sizes import CHUNK


class ScoredOn(Protocol):
    """The data that the steps of a run are scored on."""

    def dataset_of(self, step: str) -> Dataset: ...

    def scored_by(self, step: str) -> Sequence[Example]: ...


class Datasets:
    """Builds every data set of a recipe once, before training. Raises what building a data set raises."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self._built: dict[str, tuple[DatasetConfig, Dataset]] = {}
        scored = {_key(self._scored_data(name)) for name in recipe.steps} | {_key(recipe.data)}
        of_steps = [(config, f"steps.{name}.data: ") for name, step in recipe.steps.items() for config in step.data]
        for config, place in [(recipe.data, ""), *of_steps]:
            if (key := _key(config)) not in self._built:
                if key not in scored:  # the split to evaluate needs no files
                    config = config.model_copy(update={"test_split": config.train_split})
                try:
                    self._built[key] = config, config.build()
                except DataError as error:
                    raise DataError(f"{place}{error}") from None
        self.main = self._dataset(recipe.data)
        self._read = cache(lambda key, split: self._built[key][1].split(split))
        self._digest = ""

    def sources(self, step: str) -> dict[str, Source]:
        """The sources a step is trained on, by name."""
        sources = {}
        for name, config in self.recipe.sources(step).items():
            key, split, train_split = _key(config), config.validation_split, config.train_split
            has_split = split in self._dataset(config).splits() and split != train_split
            validation = self._read(key, split) if has_split else ()
            read = config.share, config.inputs or (), config.objectives or ()
            sources[name] = Source(self._read(key, train_split), validation, *read, name)
        return sources

    def scored_by(self, step: str) -> Sequence[Example]:
        """The examples a step writes or predicts for: from its own data, else from the recipe's. Raises DataError if
        there are none."""
        config = self._scored_data(step)
        if not (examples := self._read(_key(config), config.test_split)):
            place = "data" if config is self.recipe.data else f"steps.{step}.data"
            raise DataError(f"{place}.test_split: split '{config.test_split}' has no examples to score")
        return examples

    def dataset_of(self, step: str) -> Dataset:
        """The data set that a step is scored on."""
        return self._dataset(self._scored_data(step))

    def _scored_data(self, step: str) -> DatasetConfig:
        return self.recipe.scored_data(step) or self.recipe.data

    def texts(self) -> Iterator[str]:
        """The texts to train a vocabulary on: targets, texts and choices of all training splits, the recipe's own data
        first."""
        for key, (config, _) in self._built.items():
            for example in self._read(key, config.train_split):
                yield from example.targets
                for embedder in self.recipe.inputs.values():
                    yield from embedder.texts(example)
                for value in example.labels.values():  # choices, which are read as inputs
                    yield from (text for text in value if isinstance(text, str)) if isinstance(value, tuple) else ()

    def vocabularies(self) -> dict[str, tuple[str, ...]]:
        """The vocabularies of all data sets, by the name of the label. Raises DataError if two data sets disagree."""
        vocabularies: dict[str, tuple[str, ...]] = {}
        for config, dataset in self._built.values():
            for name, values in dataset.vocabularies().items():
                if vocabularies.setdefault(name, values) != values:
                    raise DataError(
                        f"data ({config.type}): '{name}' differs between two data sets of this recipe, but a head "
                        "needs one list; use the same list for both"
                    )
        return vocabularies

    def pictures(self) -> Iterator[Picture]:
        """Every picture of the data sets whose features or pictures a step reads, once. Raises DataError if such a data
        set has no pictures or only their keys, or if two data sets use one key for different pictures."""
        seen: dict[str, Picture] = {}
        for config, dataset in self._with_pictures():
            for picture in dataset.pictures():
                first = seen.setdefault(picture.key, picture)
                if first is picture:
                    yield picture
                elif repr(first.boxes) != repr(picture.boxes):
                    raise DataError(
                        f"data ({config.type}): two data sets use the key '{picture.key}' for pictures with different "
                        "boxes, but features are looked up by key; give both data sets the same settings (such as the "
                        "seed) or use two recipes"
                    )

    def _with_pictures(self) -> list[tuple[DatasetConfig, Dataset]]:
        """The data sets whose examples' features or pictures a step reads; the recipe's own if no step does."""
        steps, inputs = self.recipe.steps, self.recipe.inputs
        used = [(data, data.inputs or ()) for name in steps for data in self.recipe.sources(name).values()]
        used += [(self._scored_data(name), step.inputs) for name, step in steps.items() if step.evaluate]
        read = {_key(config) for config, names in used if any(inputs[name].takes == "picture" for name in names)}
        return [built for key, built in self._built.items() if key in read] or [self._built[_key(self.recipe.data)]]

    def fingerprint(self) -> str:
        """A hash of every example that the run can see. Raises DataError for an id that a data set has twice: files of
        results name examples by their ids, and random draws depend on them."""
        if not self._digest:
            digest = hashlib.sha256()
            for key, (config, dataset) in self._built.items():
                names = dict.fromkeys((config.train_split, config.validation_split, config.test_split))
                splits = {name: self._read(key, name) for name in names if name in dataset.splits()}
                _walk(f"data ({config.type})", splits, digest)
            self._digest = digest.hexdigest()
        return self._digest

    def _dataset(self, config: DatasetConfig) -> Dataset:
        """The data set of a config of the recipe."""
        return self._built[_key(config)][1]


def _walk(place: str, splits: Mapping[str, Sequence[Example]], digest: hashlib._Hash) -> None:
    """Adds the examples of a data set to the digest. Raises DataError for an id that two examples have."""
    hashes = array("Q")
    for examples in splits.values():
        source = iter(examples)
        while chunk := list(islice(source, CHUNK)):
            hashes.extend(hash_id(example.id) for example in chunk)
            digest.update(repr([(e.id, e.inputs, e.targets, e.labels) for e in chunk]).encode())
    numbers, counts = np.unique(np.frombuffer(hashes, np.uint64), return_counts=True)
    for twice in numbers[counts > 1].tolist():
        ids = [(name, e.id) for name, examples in splits.items() for e in examples if hash_id(e.id) == twice]
        (first, id_), (second, _), *_ = ids
        raise DataError(
            f"{place}: example '{id_}' of '{second}': the id is also in '{first}'; ids must be unique, because output "
            "files and random draws use them"
        )


class PicturesByKey(UserDict[str, Picture]):
    """The pictures of a recipe's data by key. The data sets are built, and their pictures listed, at the first use."""

    def __init__(self, datasets: Callable[[], Datasets]) -> None:
        self._datasets = datasets

    @cached_property
    def data(self) -> dict[str, Picture]:  # type: ignore[override]
        return {picture.key: picture for picture in self._datasets().pictures()}

    def __reduce__(self) -> tuple[type, tuple[dict[str, Picture]]]:  # loader workers need no data sets
        return dict, (self.data,)

    def __deepcopy__(self, memo: object) -> PicturesByKey:
        return self


def _key(config: DatasetConfig) -> str:
    """The key of a data set: equal configs share one."""
    return config.model_dump_json(exclude={*SOURCE_KEYS})


def build_split(config: DatasetConfig, split: str | None) -> Dataset:
    """A data set with one split, by default the one to evaluate; the files of other splits may be missing. Raises
    DataError."""
    name = split or config.test_split
    config = config.model_copy(update={"train_split": name, "validation_split": name, "test_split": name})
    return config.build()


def pictures_of(dataset: Dataset, examples: Sequence[Example]) -> dict[str, Picture]:
    """The pictures in the inputs of examples, by key. Raises what `dataset.pictures` raises."""
    values = (value for example in examples for field in example.inputs for value in example.shown(field))
    keys = {value for value in values if isinstance(value, str)}
    return {picture.key: picture for picture in dataset.pictures() if picture.key in keys}
