"""The data sets of a recipe: the one that its steps are scored on, and those that some steps bring of their own to
learn from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Protocol

from ..configs import DatasetConfig, FeaturesConfig
from ..errors import DataError
from ..parts import Dataset, Picture
from ..recipe.tables import Recipe
from ..tensors import Example
from .checked import Examples
from .sources import Source, check_ids


class ScoredOn(Protocol):
    """What the steps of a run are scored on."""

    def dataset_of(self, step: str) -> Dataset: ...

    def scored_by(self, step: str) -> Sequence[Example]: ...


class Datasets:
    """Built once, however many steps use them. Raises what building a data set raises: before anything is learnt."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.main = recipe.data.build()
        self._built: dict[str, tuple[DatasetConfig, Dataset]] = {_key(recipe.data): (recipe.data, self.main)}
        scored = {_key(data) for name in recipe.steps if (data := recipe.own_data(name)) is not None}
        for name, step in recipe.steps.items():
            for config in step.own:
                if (key := _key(config)) not in self._built:
                    self._built[key] = config, _own(config, name, key in scored)
        self._scored = [self.main, *(self._built[key][1] for key in scored)]
        self._checks = {id(dataset): Examples(config) for config, dataset in self._built.values()}
        self._splits: dict[tuple[int, str], Sequence[Example]] = {}
        self._sources: dict[str, dict[str, Source]] = {}

    def sources(self, step: str) -> dict[str, Source]:
        """What a step learns from, by the names that people read. Raises DataError where two have an example of one
        id."""
        if step not in self._sources:
            wanted = self.recipe.sources(step).items()
            found = {
                name: Source(
                    self._split(self._built[_key(each.data)][1], each.data.train),
                    self._watched(each.data),
                    each.share,
                    each.inputs,
                    each.objectives,
                    name,
                )
                for name, each in wanted
            }
            check_ids(step, found)
            self._sources[step] = found
        return self._sources[step]

    def _watched(self, config: DatasetConfig) -> Sequence[Example]:
        """What progress is measured on; empty where a data set has no such split, or that is learnt from."""
        dataset = self._built[_key(config)][1]
        has_split = config.validate_on in dataset.splits() and config.validate_on != config.train
        return self._split(dataset, config.validate_on) if has_split else ()

    @property
    def scored(self) -> Sequence[Example]:
        """What every row of the table is about. Raises DataError where there is no example."""
        config = self.recipe.data
        if not (examples := self._split(self.main, config.evaluate)):
            raise DataError(f"data.evaluate: split '{config.evaluate}' has no examples, so nothing can be scored")
        return examples

    def scored_by(self, step: str) -> Sequence[Example]:
        """What a step writes or predicts for: of the recipe's data, or of its own. Raises DataError where there is no
        example."""
        if (own := self.recipe.own_data(step)) is None:
            return self.scored
        if not (examples := self._split(self.dataset_of(step), own.evaluate)):
            raise DataError(
                f"steps.{step}.data.evaluate: split '{own.evaluate}' has no examples, so nothing can be scored"
            )
        return examples

    def dataset_of(self, step: str) -> Dataset:
        """The data set that a step is scored on."""
        own = self.recipe.own_data(step)
        return self.main if own is None else self._built[_key(own)][1]

    def texts(self) -> Iterator[str]:
        """What a vocabulary is learnt from: the targets, texts and choices of all that is learnt from, the recipe's own
        data first."""
        for config, dataset in self._built.values():
            for example in self._split(dataset, config.train):
                yield from example.targets
                for embedder in self.recipe.inputs.values():
                    yield from embedder.texts(example)
                for value in example.labels.values():  # choices, which are read as inputs
                    yield from (text for text in value if isinstance(text, str)) if isinstance(value, tuple) else ()

    def labels(self) -> dict[str, tuple[str, ...]]:
        """What there is to choose from, by the name of a label. Raises DataError where two data sets disagree."""
        found: dict[str, tuple[str, ...]] = {}
        for config, dataset in self._built.values():
            for name, values in dataset.labels().items():
                if found.setdefault(name, values) != values:
                    raise DataError(
                        f"data ({config.type}): its '{name}' are others than those of another data set of this recipe; "
                        "a head can learn one list only, so give both the same"
                    )
        return found

    def pictures(self) -> Iterator[Picture]:
        """Every picture of the data sets that pictures are read of, once. Raises DataError where one of them has none,
        or only keys of them, and where two mean other pictures by one key."""
        seen: dict[str, Picture] = {}
        read = self._pictured()
        for config, dataset in self._built.values():
            for picture in dataset.pictures() if config in read else ():
                first = seen.setdefault(picture.key, picture)
                if first is picture:
                    yield picture
                elif not _same_boxes(first, picture):
                    raise DataError(
                        f"data ({config.type}): its picture '{picture.key}' has other boxes than the picture of this "
                        "name in another data set of the recipe, and features are found by name; give both the same "
                        "settings (a seed, say), or a recipe each"
                    )

    def _pictured(self) -> list[DatasetConfig]:
        """The data sets of whose examples a step reads features; the recipe's own where none does."""
        recipe, read = self.recipe, list[DatasetConfig]()
        for name, step in recipe.steps.items():
            sources = [(source.data, source.inputs) for source in recipe.sources(name).values()]
            scored = [(recipe.own_data(name) or recipe.data, step.inputs)] if step.evaluate else []
            for config, inputs in [*sources, *scored]:
                if any(isinstance(recipe.inputs[each], FeaturesConfig) for each in inputs):
                    read.append(config)
        return read or [recipe.data]

    def fingerprint(self) -> str:
        """A hash of every example that the run can see."""
        digest = hashlib.sha256()
        for config, dataset in self._built.values():
            scored = any(dataset is each for each in self._scored)
            for split in (config.train, config.validate_on, *([config.evaluate] if scored else [])):
                if split in dataset.splits():
                    for example in self._split(dataset, split):
                        content = (example.id, sorted(example.inputs.items()), example.targets)
                        labels = sorted(example.labels.items())
                        digest.update(repr((*content, labels) if labels else content).encode())
        return digest.hexdigest()

    def _split(self, dataset: Dataset, name: str) -> Sequence[Example]:
        """A split, read and checked the first time. Raises PluginError."""
        key = id(dataset), name
        if key not in self._splits:
            checks = self._checks[id(dataset)]
            with checks.calls(name):
                examples = dataset.split(name)
            self._splits[key] = checks.check(name, examples)
        return self._splits[key]


def _key(config: DatasetConfig) -> str:
    """Equal configs are one data set."""
    return config.model_dump_json()


def _own(config: DatasetConfig, step: str, scored: bool) -> Dataset:
    """A step's own data. Where no step is scored on them, the files of a split to evaluate are not asked for."""
    try:
        return (config if scored else config.model_copy(update={"evaluate": config.train})).build()
    except DataError as error:
        raise DataError(f"steps.{step}.data: {error}") from None


def alone(config: DatasetConfig, split: str | None) -> Dataset:
    """A data set with one split, by default the one to evaluate; no files of others need be there. Raises
    DataError."""
    name = split or config.evaluate
    return config.model_copy(update={"train": name, "validate_on": name, "evaluate": name}).build()


def pictures_of(dataset: Dataset, examples: Sequence[Example]) -> dict[str, Picture]:
    """The pictures that examples name in their inputs, by key. Raises what `dataset.pictures` raises."""
    shown = (value for example in examples for field in example.inputs for value in example.shown(field))
    wanted = {value for value in shown if isinstance(value, str)}
    return {picture.key: picture for picture in dataset.pictures() if picture.key in wanted}


def _same_boxes(first: Picture, second: Picture) -> bool:
    if first.boxes is None or second.boxes is None:
        return first.boxes is second.boxes
    return [*map(tuple, first.boxes)] == [*map(tuple, second.boxes)]
