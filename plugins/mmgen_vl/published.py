"""Data sets in published files: their files are found, a split is read when first asked for, and pictures come from a
folder."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mmgen.errors import DataError
from mmgen.features.images import images_by_key, open_image
from mmgen.parts import Dataset, Picture
from mmgen.reading.finding import Finder
from mmgen.tensors import Example

from .boxes import Box

if TYPE_CHECKING:
    from .configs import Published


class Split(NamedTuple):
    """A split that was read.

    counts   what was left out, and what else `describe` tells of the split: name -> number
    lacking  what is missing -> the images, or ids, that lack it
    """

    examples: Sequence[Example]
    counts: Mapping[str, int]
    lacking: Mapping[str, Sequence[str]]


class PublishedFiles(Dataset, abc.ABC):
    """The data set of a `Published` config. Raises DataError at once when files are missing, and when a split is first
    asked for when one cannot be used.

    name     of the data set, as its paper writes it
    licence  of its files
    source   where they are to be had
    advice   what is to be done about files that are missing
    """

    name: str
    licence: str
    source: str
    advice: str

    def __init__(self, config: Published) -> None:
        self.config = config
        finder = self.finder()
        self.files = {split: self.find(finder, split) for split in config.used()}
        if config.images is not None:
            finder.subfolder(config.images, "data.images names the folder of raw images")
        finder.finish(self.advice)
        self._splits: dict[str, Split] = {}

    def finder(self) -> Finder:
        return Finder(self.name, self.config.folder)

    @abc.abstractmethod
    def find(self, finder: Finder, split: str) -> Any:
        """The files of a split."""

    @abc.abstractmethod
    def load(self, name: str) -> Split:
        """Reads a split. Raises DataError."""

    def boxes(self, key: str) -> tuple[Sequence[Box], Sequence[str]] | None:
        """The boxes of a picture and what is in them, where they are published."""
        return None

    def splits(self) -> tuple[str, ...]:
        return tuple(self.files)

    def split(self, name: str) -> Sequence[Example]:
        return self._loaded(name).examples

    def lacking(self, split: str) -> Mapping[str, Sequence[str]]:
        return self._loaded(split).lacking

    def describe(self) -> dict[str, Any]:
        """name; examples: {split: number}; counts: {split: what was left out}; licence; source."""
        splits = {split: self._loaded(split) for split in self.files}
        return {
            "name": self.name,
            "examples": {name: len(split.examples) for name, split in splits.items()},
            "counts": {name: dict(split.counts) for name, split in splits.items()},
            "licence": self.licence,
            "source": self.source,
        }

    def pictures(self) -> Iterator[Picture]:
        if self.config.images is None:
            raise DataError(
                f"{self.name} is set up without raw images; set data.images, or give the embedder a file of features"
            )
        keys = (key for split in self.files for example in self.split(split) for key in example.shown("image"))
        for key in dict.fromkeys(keys):
            if key in self.pictures_at:
                boxes, labels = self.boxes(key) or (None, None)
                yield Picture(key, partial(open_image, self.pictures_at[key]), boxes, labels)

    @cached_property
    def pictures_at(self) -> dict[str, Path]:
        """Files of the folder of images by key."""
        assert self.config.images is not None  # asked before there is a picture
        return images_by_key(self.config.folder / self.config.images)

    def _loaded(self, name: str) -> Split:
        if name not in self.files:
            raise DataError(f"{self.name} has no split '{name}' here; there are: {', '.join(self.files)}")
        if name not in self._splits:
            self._splits[name] = self.load(name)
        return self._splits[name]


def counted(counts: Mapping[str, int], words: Mapping[str, str], what: str = "") -> str:
    """Counts in words: "1,200 images without a picture, 1 empty question"; nothing for those of 0. `words`: name ->
    text, with {s} where its plural has one; {what} is filled in."""
    return ", ".join(
        f"{counts[name]:,} {text.format(s='s' * (counts[name] != 1), what=what)}"
        for name, text in words.items()
        if counts[name]
    )


def read_rows(rows: Iterable[tuple[int, Any]], path: Path, take: Callable[[Any], None]) -> None:
    """Hand the numbered lines of a file to `take`; a DataError that it raises gets file and line in front."""
    for number, row in rows:
        try:
            take(row)
        except DataError as error:
            raise DataError(f"{path}:{number}: {error}") from None
