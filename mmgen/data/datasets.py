"""The data sets of a recipe, built and checked once: splits, sources, texts, vocabularies, pictures, fingerprint."""

from __future__ import annotations

import hashlib
import itertools
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Protocol

from ..configs import DatasetConfig
from ..errors import DataError
from ..parts import Dataset, Picture, Stream
from ..recipe.tables import Recipe
from ..registry import built
from ..tensors import Example
from .example_copies import Copy
from .example_sizes import CHUNK, Measures, chunks
from .part_checks import Examples, has_duplicate_hash
from .sources import Source, check_ids


class ScoredOn(Protocol):
    """The data that the steps of a run are scored on."""

    def dataset_of(self, step: str) -> Dataset: ...

    def scored_by(self, step: str) -> Sequence[Example]: ...


class Datasets:
    """Builds every data set of a recipe once, before training. Raises what building a data set raises; one
    DataError for all that lack files."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self._built: dict[str, tuple[DatasetConfig, Dataset]] = {}
        scored = {_dataset_key(data) for name in recipe.steps if (data := recipe.scored_data(name)) is not None}
        errors: dict[str, DataError] = {}
        of_steps = ((config, name) for name, step in recipe.steps.items() for config in step.data_sets)
        for config, name in [(recipe.data, ""), *of_steps]:
            if (key := _dataset_key(config)) not in {**self._built, **errors}:
                try:
                    self._built[key] = config, _build_data(config, name, not name or key in scored)
                except DataError as error:
                    errors[key] = error
        if errors:
            raise DataError("\n".join(map(str, errors.values())))
        self.main = self._built[_dataset_key(recipe.data)][1]
        self._scored = [self.main, *(self._built[key][1] for key in scored)]
        self._checks = {id(dataset): Examples(config) for config, dataset in self._built.values()}
        self._splits: dict[tuple[int, str], Sequence[Example]] = {}
        self._copies: dict[int, Copy] = {}  # by the identity of a split's examples
        self._digest: str | None = None
        self.trusted = False  # whether another process has checked the examples
        self._sources: dict[str, dict[str, Source]] = {}

    def sources(self, step: str) -> dict[str, Source]:
        """The sources a step is trained on, by name. Raises DataError if two of them have an example with the same
        id."""
        if step not in self._sources:
            recipe_sources = self.recipe.sources(step).items()
            sources = {
                name: Source(
                    self._checked_split(self._built[_dataset_key(source.data)][1], source.data.train_split),
                    self._validation_examples(source.data),
                    source.share,
                    source.inputs,
                    source.objectives,
                    name,
                    stream=self._open_stream(source.data),
                )
                for name, source in recipe_sources
            }
            hashes = [self._id_hashes(source.data) for _, source in recipe_sources]
            if len(sources) > 1 and not self.trusted and has_duplicate_hash(hashes):
                check_ids(step, sources)
            self._sources[step] = sources
        return self._sources[step]

    def _open_stream(self, config: DatasetConfig) -> Stream | None:
        """The stream of a data set's training examples. Raises DataError if they are scored too."""
        if (
            stream := self._built[_dataset_key(config)][1].stream(config.train_split)
        ) and config.test_split == config.train_split:
            raise DataError(
                f"data ({config.type}): split '{config.test_split}' is a stream and cannot be scored; name "
                "another split as test_split"
            )
        return stream

    def validation_by(self, step: str) -> Sequence[Example]:
        """The validation examples of the data that a step is scored on; empty if there are none."""
        return self._validation_examples(self.recipe.scored_data(step) or self.recipe.data)

    def _id_hashes(self, config: DatasetConfig) -> array[int]:
        """The hashes of the ids of a data set's training examples."""
        return self._checks[id(self._built[_dataset_key(config)][1])].hashes.get(config.train_split, array("q"))

    def set_measures(self, step: str, measures: Mapping[str, Measures]) -> None:
        """Note the sizes of the training examples of a step's sources."""
        sources = self.sources(step)
        self._sources[step] = {name: replace(sources[name], measures=measures[name]) for name in sources}

    def chunks(self, examples: Sequence[Example], size: int = CHUNK) -> Iterator[Sequence[Example]]:
        """The examples of a split in chunks, from the copy if the data set would create them again."""
        copy = self._copies.get(id(examples))
        return copy.chunks() if copy and copy.complete else chunks(examples, size)

    def head(self, examples: Sequence[Example], count: int) -> Sequence[Example]:
        """The first examples of a split."""
        return list(itertools.islice(itertools.chain.from_iterable(self.chunks(examples, count)), count))

    def drop_copies(self) -> None:
        """Delete the copies of examples, once nothing reads all examples again."""
        self._copies.clear()

    def _validation_examples(self, config: DatasetConfig) -> Sequence[Example]:
        """The examples for the validation loss; empty if the data set has no such split or trains on it."""
        dataset = self._built[_dataset_key(config)][1]
        has_split = config.validation_split in dataset.splits() and config.validation_split != config.train_split
        return self._checked_split(dataset, config.validation_split) if has_split else ()

    @property
    def scored(self) -> Sequence[Example]:
        """The examples that every row of the table is scored on. Raises DataError if there are none."""
        config = self.recipe.data
        if not (examples := self._checked_split(self.main, config.test_split)):
            raise DataError(f"data.test_split: split '{config.test_split}' has no examples, so nothing can be scored")
        return examples

    def scored_by(self, step: str) -> Sequence[Example]:
        """The examples a step writes or predicts for: from its own data, else from the recipe's. Raises DataError if
        there are none."""
        if (step_data := self.recipe.scored_data(step)) is None:
            return self.scored
        if not (examples := self._checked_split(self.dataset_of(step), step_data.test_split)):
            raise DataError(
                f"steps.{step}.data.test_split: split '{step_data.test_split}' has no examples, so nothing can be "
                "scored"
            )
        return examples

    def dataset_of(self, step: str) -> Dataset:
        """The data set that a step is scored on."""
        step_data = self.recipe.scored_data(step)
        return self.main if step_data is None else self._built[_dataset_key(step_data)][1]

    def texts(self) -> Iterator[str]:
        """The texts to train a vocabulary on: targets, texts and choices of all training splits, the recipe's own data
        first."""
        for config, dataset in self._built.values():
            for example in itertools.chain.from_iterable(self.chunks(self._checked_split(dataset, config.train_split))):
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
        read = self._data_with_pictures()
        for config, dataset in self._built.values():
            for picture in dataset.pictures() if config in read else ():
                first = seen.setdefault(picture.key, picture)
                if first is picture:
                    yield picture
                elif not _same_boxes(first, picture):
                    raise DataError(
                        f"data ({config.type}): two data sets use the key '{picture.key}' for pictures with different "
                        "boxes, but features are looked up by key; give both data sets the same settings (such as the "
                        "seed) or use two recipes"
                    )

    def _data_with_pictures(self) -> list[DatasetConfig]:
        """The data sets whose examples' features or pictures a step reads; the recipe's own if no step does."""
        recipe, read = self.recipe, list[DatasetConfig]()
        for name, step in recipe.steps.items():
            sources = [(source.data, source.inputs) for source in recipe.sources(name).values()]
            scored = [(recipe.scored_data(name) or recipe.data, step.inputs)] if step.evaluate else []
            for config, inputs in [*sources, *scored]:
                configs = [recipe.inputs[input_name] for input_name in inputs]
                if any(config_.takes == "picture" for config_ in configs):
                    read.append(config)
        return read or [recipe.data]

    def fingerprint(self) -> str:
        """A hash of every example that the run can see."""
        if self._digest is None:
            digest = hashlib.sha256()
            for config, dataset in self._built.values():
                is_scored = any(dataset is scored for scored in self._scored)
                for split in (config.train_split, config.validation_split, *([config.test_split] if is_scored else [])):
                    if split in dataset.splits():
                        self._checked_split(dataset, split, partial(_add_to_digest, digest))
                    if stream := dataset.stream(split):
                        digest.update(stream.fingerprint().encode())
            self._digest = digest.hexdigest()
        return self._digest

    @property
    def checked(self) -> bool:
        """Whether `fingerprint` is known."""
        return self._digest is not None

    def trust(self, fingerprint: str) -> None:
        """Take the examples for those with this fingerprint, which another process has checked."""
        self._digest, self.trusted = fingerprint, True

    def _checked_split(
        self, dataset: Dataset, name: str, visit: Callable[[Sequence[Example]], object] | None = None
    ) -> Sequence[Example]:
        """A split, read and checked on first use; `visit` is called with some examples at a time. Raises
        PluginError."""
        key = id(dataset), name
        if key in self._splits:
            if visit:
                for chunk in self.chunks(self._splits[key]):
                    visit(chunk)
            return self._splits[key]
        checks = self._checks[id(dataset)]
        with checks.calls(name):
            examples = dataset.split(name)
        visits: list[Callable[[Sequence[Example]], object]] = [visit] if visit else []
        if not self.trusted:
            if not isinstance(examples, list | tuple):
                visits.append((copy := Copy()).add)
                self._copies[id(examples)] = copy
            checks.check(name, examples, lambda chunk: [call(chunk) for call in visits])
        self._splits[key] = examples
        return examples


class PicturesByKey(Mapping[str, Picture]):
    """The pictures of a recipe's data by key. The data sets are built, and their pictures listed, at the first use."""

    def __init__(self, datasets: Callable[[], Datasets]) -> None:
        self._datasets = datasets

    @cached_property
    def _load(self) -> dict[str, Picture]:
        return {picture.key: picture for picture in self._datasets().pictures()}

    def __getitem__(self, key: str) -> Picture:
        return self._load[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._load)

    def __len__(self) -> int:
        return len(self._load)

    def __reduce__(self) -> tuple[type, tuple[dict[str, Picture]]]:  # loader workers need no data sets
        return dict, (self._load,)

    def __deepcopy__(self, memo: object) -> PicturesByKey:
        return self


def _add_to_digest(digest: hashlib._Hash, examples: Sequence[Example]) -> None:
    for example in examples:
        content = (example.id, sorted(example.inputs.items()), example.targets)
        labels = sorted(example.labels.items())
        digest.update(repr((*content, labels) if labels else content).encode())


def _dataset_key(config: DatasetConfig) -> str:
    """The key of a data set: equal configs share one."""
    return config.model_dump_json()


def _build_data(config: DatasetConfig, step: str, scored: bool) -> Dataset:
    """The recipe's data, or those of a step. If no step is scored on the data, the split to evaluate needs no files."""
    place = f"steps.{step}.data" if step else "data"
    try:
        config = config if scored else config.model_copy(update={"test_split": config.train_split})
        return built(config, config.build, place)
    except DataError as error:
        raise DataError(f"{place}: {error}") if step else error from None


def build_split(config: DatasetConfig, split: str | None) -> Dataset:
    """A data set with one split, by default the one to evaluate; the files of other splits may be missing. Raises
    DataError."""
    name = split or config.test_split
    config = config.model_copy(update={"train_split": name, "validation_split": name, "test_split": name})
    return built(config, config.build, "data")


def pictures_of(dataset: Dataset, examples: Sequence[Example]) -> dict[str, Picture]:
    """The pictures in the inputs of examples, by key. Raises what `dataset.pictures` raises."""
    values = (value for example in examples for field in example.inputs for value in example.shown(field))
    keys = {value for value in values if isinstance(value, str)}
    return {picture.key: picture for picture in dataset.pictures() if picture.key in keys}


def _same_boxes(first: Picture, second: Picture) -> bool:
    if first.boxes is None or second.boxes is None:
        return first.boxes is second.boxes
    return [*map(tuple, first.boxes)] == [*map(tuple, second.boxes)]
