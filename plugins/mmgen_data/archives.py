"""The data set of archives: rows of Arrow files that are mapped into memory, and their pictures."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache, partial
from io import BytesIO
from pathlib import PurePath
from typing import Any

from PIL import Image

from mmgen.errors import DataError, install_extra
from mmgen.examples import Example
from mmgen.features.images import open_image
from mmgen.parts import Dataset, Picture
from mmgen.reading.text import join_names

from . import Archives as Config

READERS = {".tar": "webdataset", ".parquet": "parquet", ".json": "json", ".jsonl": "json"}
ROWS = 1000  # read at a time


class ArchiveDataset(Dataset):
    """Splits: those that the config names."""

    def __init__(self, config: Config) -> None:
        self.config = config
        names = {config.train_split: config.train, config.validation_split: config.val, config.test_split: config.test}
        self.places = {name: place for name, place in names.items() if place is not None}
        self._table = cache(partial(load, config))

    def splits(self) -> tuple[str, ...]:
        return tuple(self.places)

    def split(self, name: str) -> Rows:
        if name not in self.places:
            raise DataError(f"archives: no split '{name}'; the splits are {', '.join(self.places)}")
        return Rows(self.config, name, self.places[name], self._table(self.places[name]))

    def describe(self) -> dict[str, Any]:
        return {
            "name": "archives",
            "examples": {name: len(self.split(name)) for name in self.places},
            "licence": "unknown",
            "source": self.config.hub or self.config.train,
        }

    def pictures(self) -> Iterator[Picture]:
        named = {name: column for name, column in self.config.columns.items() if name == "image"}
        only_keys, seen = self.config.model_copy(update={"columns": named, "targets": None}), set[str]()
        for name, place in self.places.items():
            table, picture = self._table(place), self.config.picture
            with_bytes = [column for column in table.column_names if column.endswith(".bytes")]
            contents = table.select_columns(find_column(table, place, picture, f"{picture}.bytes", *with_bytes))
            for number, example in enumerate(Rows(only_keys, name, place, table)):
                if (key := example.inputs["image"]) not in seen:
                    seen.add(key)
                    yield Picture(key, partial(_load_picture, contents, number, f"{place}: '{key}'"))


def _load_picture(table: Any, number: int, place: str) -> Image.Image:
    (content,) = table[number].values()
    if not isinstance(content, bytes):
        raise DataError(f"{place}: has no picture; expected its bytes")
    return open_image(BytesIO(content), place)


class Rows(Sequence[Example]):
    """The examples of a split, made when they are read."""

    def __init__(self, config: Config, split: str, place: str, table: Any) -> None:
        """Raises DataError for a column that is missing."""

        def column(name: str) -> str:  # it may be a key of the JSON object in a tar file
            return find_column(table, place, name, f"json.{name}")

        self.split, self.place = split, place
        self.key = column(config.key) if config.key else ""
        self.inputs = {name: column(value) for name, value in config.columns.items()}
        self.targets = column(config.targets) if config.targets else ""
        columns = {self.key, *self.inputs.values(), self.targets} - {""}
        self.table = table.select_columns(
            sorted(columns) or table.column_names[-1:]
        )  # without columns it has no length

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, index: Any) -> Any:
        numbers = range(len(self))[index]
        if isinstance(numbers, range):
            return [self[number] for number in numbers]
        return next(self._read(numbers, numbers + 1))

    def __iter__(self) -> Iterator[Example]:
        for start in range(0, len(self), ROWS):
            yield from self._read(start, min(start + ROWS, len(self)))

    def _read(self, start: int, end: int) -> Iterator[Example]:
        """Raises DataError for a value that is not a text."""
        columns = self.table[start:end]
        for number in range(start, end):
            row = {column: values[number - start] for column, values in columns.items()}
            texts = partial(_read_texts, row, f"{self.place}: row {number}")
            key = texts(self.key)[0] if self.key else f"{self.split}-{number}"
            inputs = {"image": key} | {
                name: texts(column) if isinstance(row[column], list) else texts(column)[0]
                for name, column in self.inputs.items()
            }
            yield Example(key, inputs, texts(self.targets) if self.targets else ())


def _read_texts(row: dict[str, Any], place: str, column: str) -> tuple[str, ...]:
    texts = row[column] if isinstance(row[column], list) else [row[column]]
    if not texts or not {*map(type, texts)} <= {str, int}:
        expected = "must be a text, a whole number, or a list of them"
        raise DataError(f"{place}: '{column}' {expected}, but is {row[column]!r:.60}")
    return tuple(map(str, texts))


def find_column(table: Any, place: str, *names: str) -> str:
    """The first of the names that is a column. Raises DataError if none is."""
    for name in names:
        if name in table.column_names:
            return name
    raise DataError(f"{place}: no column '{names[0]:.60}'; the columns are {join_names(table.column_names)}")


def load(config: Config, place: str) -> Any:
    """The table of a split, copied to Arrow files when it is read for the first time. A column of a nested table is
    "a.b". Raises DataError."""
    ending = PurePath(place).suffix
    if not config.hub and ending not in READERS:
        raise DataError(f"{place}: expected files that end in {', '.join(READERS)}")
    try:
        import datasets
    except ImportError:
        raise DataError(f"{place}: needs the package datasets; {install_extra('streams')}") from None
    datasets.logging.set_verbosity(logging.CRITICAL)  # it logs the errors that it raises
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    options: dict[str, Any] = {} if config.hub else {"data_files": files_of(place)}
    try:
        path = config.hub or READERS[ending]
        builder = datasets.load_dataset_builder(path, config.subset, revision=config.revision, **options)
        if not config.hub and not builder.config.data_files["train"]:
            raise FileNotFoundError("no such file")
        builder.download_and_prepare()
        table = builder.as_dataset(place if config.hub else "train")
    except Exception as error:  # it and file systems raise errors of many kinds
        cause = error.__cause__ if isinstance(error, datasets.exceptions.DatasetGenerationError) else error
        reason = str(cause).strip().partition("\n")[0] or type(cause).__name__
        raise DataError(f"{config.hub or place}: cannot be read: {reason}") from None
    for name, feature in table.features.items():
        if isinstance(feature, datasets.Image):
            table = table.cast_column(name, datasets.Image(decode=False))
    table = table.flatten()
    return table.rename_column("__key__", "key") if "__key__" in table.column_names else table


def files_of(place: str) -> list[str]:
    """The files, or patterns, of a place with ranges: "a-{08..10}.tar" -> "a-08.tar", "a-09.tar", "a-10.tar"."""
    if not (numbers := re.search(r"\{(\d+)\.\.(\d+)\}", place)):
        return [place]
    first, last = numbers.groups()
    filled = (str(number).zfill(len(first)) for number in range(int(first), int(last) + 1))
    return [file for number in filled for file in files_of(place.replace(numbers[0], number, 1))]
