"""The data set of archives: the training examples as a stream, the others in memory, and the pictures of all."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import Any

from mmgen.errors import DataError
from mmgen.parts import Dataset, Picture, Stream
from mmgen.reading.text import join_names
from mmgen.tensors import Example

from . import Archives as Config
from . import folders, parquet, tars
from .places import files_of, is_url, size_of

HEAD = 1000  # first examples of the stream, which a run checks and measures


class StreamDataset(Dataset):
    """Splits: those that the config names."""

    def __init__(self, config: Config) -> None:
        self.config = config
        names = {config.train_split: config.train, config.validation_split: config.val, config.test_split: config.test}
        self.places = {name: place for name, place in names.items() if place is not None}
        self._splits: dict[str, Sequence[Example]] = {}

    def splits(self) -> tuple[str, ...]:
        return tuple(self.places)

    def split(self, name: str) -> Sequence[Example]:
        if name not in self.places:
            raise DataError(f"data.{name}: no split '{name}'; the splits are {', '.join(self.places)}")
        if name not in self._splits:
            examples = self._archive_stream(name).examples()
            self._splits[name] = list(islice(examples, HEAD) if name == self.config.train_split else examples)
        return self._splits[name]

    def stream(self, name: str) -> ArchiveStream | None:
        return self._archive_stream(name) if name == self.config.train_split else None

    def _archive_stream(self, name: str) -> ArchiveStream:
        return ArchiveStream(self.config, self.places[name])

    def describe(self) -> dict[str, Any]:
        counts = {name: len(self.split(name)) for name in self.places if name != self.config.train_split}
        return {"name": "archives", "examples": counts, "licence": "unknown", "source": self.config.train}

    def pictures(self) -> Iterator[Picture]:
        for place in dict.fromkeys(self.places.values()):
            yield from pictures(self.config, place)


def pictures(config: Config, place: str) -> Iterator[Picture]:
    """The pictures of archives, or below a URL, not yet read."""
    if is_url(place) and not place.endswith((".tar", ".parquet")):
        yield from folders.pictures(place)
        return
    for archive in files_of(place):
        if archive.endswith(".parquet"):
            yield from parquet.pictures(archive, config.key, config.picture)
        else:
            yield from tars.pictures(archive)


class ArchiveStream(Stream):
    """The examples of archives, in their order, again and again."""

    def __init__(self, config: Config, place: str) -> None:
        self.config, self.place = config, place

    @cached_property
    def archives(self) -> list[str]:
        return files_of(self.place)

    def fingerprint(self) -> str:
        """From the names and sizes of the files."""
        sizes = [(archive, size_of(archive)) for archive in self.archives]
        return hashlib.sha256(repr((sizes, self.config.model_dump(mode="json"))).encode()).hexdigest()[:32]

    def read(self, position: int) -> Iterator[Example]:
        """Archives before the position are passed over by their headers or row counts."""
        while True:
            passed = 0
            for archive in self.archives:
                for source in self._sources_from(archive, position):
                    if isinstance(source, int):
                        position, passed = position - source, passed + source
                    else:
                        passed += 1
                        yield self._read_example(source)
            if not passed:
                raise DataError(f"{self.place}: contains no examples")
            position %= passed  # passes before the position need not be read

    def examples(self) -> Iterator[Example]:
        """One pass. Raises DataError if there is none."""
        sources = chain.from_iterable(self._sources_from(archive, 0) for archive in self.archives)
        examples = (self._read_example(source) for source in sources if not isinstance(source, int))
        if (first := next(examples, None)) is None:
            raise DataError(f"{self.place}: contains no examples")
        return chain([first], examples)

    def _sources_from(self, archive: str, start: int) -> Iterator[tars.Sample | parquet.Row | int]:
        """The examples of an archive from `start` on, not yet read; before them, how many were passed over."""
        if archive.endswith(".parquet"):
            size = parquet.count(archive)
            yield min(start, size)
            if start < size:
                yield from parquet.rows(archive, self._columns_to_read, start)
            return
        samples, passed = tars.samples(archive), 0
        for _ in islice(samples, start):
            passed += 1
        yield passed
        yield from samples

    @property
    def _columns_to_read(self) -> list[str]:
        targets = [self.config.targets] if self.config.targets else []
        return list(dict.fromkeys([self.config.key, *self.config.columns.values(), *targets]))

    def _read_example(self, source: tars.Sample | parquet.Row) -> Example:
        """Raises DataError for a field that is missing or has no text."""
        fields, config = source.fields(), self.config
        key = source.key if isinstance(source, tars.Sample) else str(fields[config.key])
        inputs: dict[str, Any] = {"image": key}
        for name, column in config.columns.items():
            inputs[name] = _text_of_field(source, fields, column)
        targets = _text_of_field(source, fields, config.targets) if config.targets else ()
        return Example(key, inputs, (targets,) if isinstance(targets, str) else targets)


def _text_of_field(source: tars.Sample | parquet.Row, fields: dict[str, Any], name: str) -> str | tuple[str, ...]:
    """A text, or a tuple of texts."""
    value = fields.get(name)
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(text, str) for text in value):
        return tuple(value)
    problem = (
        "must be a text or a list of texts" if name in fields else f"is missing; the fields are {join_names(fields)}"
    )
    raise DataError(f"{source.place}: '{name:.60}' {problem}")
