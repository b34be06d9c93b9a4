"""The base of data sets in published files: finds files, reads a split on first use, pictures of a folder, counts."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.features.images import images_by_key, open_image
from mmgen.parts import Dataset, Picture

from .boxes import Box
from .find_files import Finder

if TYPE_CHECKING:
    from .configs import Published


class Split(NamedTuple):
    """The content of a split.

    counts   name -> number of examples left out, and other numbers for `describe`
    lacking  kind of missing data -> images, or ids, without this data
    """

    examples: Sequence[Example]
    counts: Mapping[str, int]
    lacking: Mapping[str, Sequence[str]]


class EmptySplit(DataError):
    """No example remains in a split. `lacking`: as in `Split`."""

    def __init__(self, message: str, lacking: Mapping[str, Sequence[str]]) -> None:
        super().__init__(message)
        self.lacking = lacking


class PublishedFiles(Dataset, abc.ABC):
    """The data set of a `Published` config. Raises DataError at once if files are missing, and on first use of a split
    if its files are invalid.

    name     name of the data set, as in its paper
    licence  licence of its files
    source   where to get the files
    advice   what to do about missing files
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
        """Find the files of a split."""

    @abc.abstractmethod
    def load(self, name: str) -> Split:
        """Read a split. Raises DataError; EmptySplit if no example remains."""

    def boxes(self, key: str) -> tuple[Sequence[Box], Sequence[str] | None] | None:
        """The boxes of a picture and their names, as far as known, or None without boxes."""
        return None

    def splits(self) -> tuple[str, ...]:
        return tuple(self.files)

    def split(self, name: str) -> Sequence[Example]:
        return self._load_once(name).examples

    def lacking(self, split: str) -> Mapping[str, Sequence[str]]:
        """As for all data sets; also of a split in which no example remains."""
        try:
            return self._load_once(split).lacking
        except EmptySplit as error:
            return error.lacking

    def describe(self) -> dict[str, Any]:
        """A dict of name; examples: {split: number}; counts: {split: its counts}; licence; source."""
        splits = {split: self._load_once(split) for split in self.files}
        return {
            "name": self.name,
            "examples": {name: len(split.examples) for name, split in splits.items()},
            "counts": {name: dict(split.counts) for name, split in splits.items()},
            "licence": self.licence,
            "source": self.source,
        }

    def pictures(self) -> Iterator[Picture]:
        if self.config.images is None:
            raise DataError(f"{self.name} has no raw images; set data.images, or give the embedder a file of features")
        keys = (key for split in self.files for example in self.split(split) for key in example.shown("image"))
        for key in dict.fromkeys(keys):
            if key in self.pictures_at:
                boxes, region_names = self.boxes(key) or (None, None)
                yield Picture(key, partial(open_image, self.pictures_at[key]), boxes, region_names)

    @cached_property
    def pictures_at(self) -> dict[str, Path]:
        """Key -> file in the folder of images."""
        assert self.config.images is not None  # `pictures` checks this
        return images_by_key(self.config.folder / self.config.images)

    def _load_once(self, name: str) -> Split:
        if name not in self.files:
            raise DataError(f"{self.name}: split '{name}' is not in use; the splits are: {', '.join(self.files)}")
        if name not in self._splits:
            self._splits[name] = self.load(name)
        return self._splits[name]


def counted(counts: Mapping[str, int], words: Mapping[str, str], what: str = "") -> str:
    """Format counts as text: "1,200 images without a picture, 1 empty question"; counts of 0 are left out. `words`:
    name -> text with {s} for the plural's s; {what} is filled in."""
    return ", ".join(
        f"{counts[name]:,} {text.format(s='s' * (counts[name] != 1), what=what)}"
        for name, text in words.items()
        if counts[name]
    )


def read_rows(rows: Iterable[tuple[int, Any]], path: Path, take: Callable[[Any], None]) -> None:
    """Call `take` with each numbered line of a file. Adds file and line to a DataError of `take`."""
    for number, row in rows:
        try:
            take(row)
        except DataError as error:
            raise DataError(f"{path}:{number}: {error}") from None
