"""What published data sets share: their files are found, a split is read when first asked for, and pictures come from a
folder."""

from __future__ import annotations

import abc
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from mmgen_vl.boxes import Box

from mmgen.errors import DataError
from mmgen.features.images import images_by_key, open_image
from mmgen.parts import Dataset, Picture
from mmgen.reading.finding import Finder
from mmgen.reading.text import read_text
from mmgen.tensors import Example

from .published import Published

ODD = {  # what is left out of a split -> how it is told
    "without_picture": "example{s} without a picture",
    "without_text": "example{s} without a text",
    "without_answers": "question{s} without answers",
    "without_box": "{what}{s} without a box",
    "without_phrase": "caption{s} without a phrase that has one",
}

log = logging.getLogger("mmgen")


class Read(NamedTuple):
    """A split as its files have it. `counts`: what was left out, by names of `ODD`."""

    examples: list[Example]
    counts: Counter[str]


class PublishedDataset(Dataset, abc.ABC):
    """Raises DataError at once when files are missing, and when a split is first asked for when one cannot be used.

    name     of the data set, as its paper writes it
    licence  of its files
    source   where they are to be had
    advice   what is to be done about files that are missing
    boxed    what may lack a box, in words
    """

    name: str
    licence: str
    source: str
    advice: str
    boxed: str = "example"

    def __init__(self, config: Published) -> None:
        self.config = config
        finder = self.finder()
        self.files = {split: self.find(finder, split) for split in config.used()}
        if config.images is not None:
            finder.subfolder(config.images, "data.images names the folder of raw images")
        finder.finish(self.advice)
        self._read: dict[str, Read] = {}
        self._lacking: dict[str, list[str]] = {}

    def finder(self) -> Finder:
        return Finder(self.name, self.config.folder)

    @abc.abstractmethod
    def find(self, finder: Finder, split: str) -> Any:
        """The files of a split."""

    def named(self, split: str) -> Path:
        """The file that tells which examples a split has: its only one, where `find` gives a path."""
        found: Path = self.files[split]
        return found

    @abc.abstractmethod
    def read(self, split: str) -> Read:
        """The examples of a split, those without a picture among them. Raises DataError."""

    def boxes(self, key: str) -> tuple[Sequence[Box], Sequence[str]] | None:
        """The boxes of a picture and what is in them, where they are published."""
        return None

    def splits(self) -> tuple[str, ...]:
        return tuple(self.files)

    def split(self, name: str) -> Sequence[Example]:
        if name not in self.files:
            raise DataError(f"{self.name} has no split '{name}' here; there are: {', '.join(self.files)}")
        if name not in self._read:
            self._read[name] = self._with_pictures(name, self.read(name))
        return self._read[name].examples

    def describe(self) -> dict[str, Any]:
        """name; examples: {split: number}; counts: {split: what was left out}; licence; source."""
        return {
            "name": self.name,
            "examples": {split: len(self.split(split)) for split in self.files},
            "counts": {split: dict(self._read[split].counts) for split in self.files},
            "licence": self.licence,
            "source": self.source,
        }

    def lacking(self, split: str) -> Mapping[str, Sequence[str]]:
        self.split(split)
        return {"without_picture": self._lacking[split]} if self._lacking[split] else {}

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

    def _with_pictures(self, split: str, read: Read) -> Read:
        """Those examples that are kept. What is left out is counted, and said once."""
        examples, counts = read
        absent = dict.fromkeys(
            key
            for example in (examples if self.config.images is not None else ())
            for key in example.shown("image")
            if key not in self.pictures_at
        )
        self._lacking[split] = [*absent]
        if absent:
            if self.config.missing == "error":
                raise DataError(
                    f"{self.name} {split}: {len(absent):,} of its images are not in "
                    f"{self.config.folder / (self.config.images or '')}, {next(iter(absent))} the first; set missing = "
                    '"drop" to leave their examples out, or "keep"'
                )
            if self.config.missing == "drop":
                kept = [example for example in examples if not absent.keys() & set(example.shown("image"))]
                counts["without_picture"] += len(examples) - len(kept)
                examples = kept
        told = ", ".join(
            f"{count:,} {ODD[name].format(s='s' * (count != 1), what=self.boxed)}"
            for name, count in counts.items()
            if count
        )
        if not examples:
            raise DataError(f"{self.named(split)}: no example is left for the split '{split}': {told or 'it is empty'}")
        if told:
            log.warning("%s %s: left out %s", self.name, split, told)
        return Read(examples, counts)


def placed(rows: Iterable[tuple[int, Any]], path: Path, take: Callable[[Any], None]) -> None:
    """Hand the numbered lines of a file to `take`; a DataError that it raises gets file and line in front."""
    for number, row in rows:
        try:
            take(row)
        except DataError as error:
            raise DataError(f"{path}:{number}: {error}") from None


def read_images(path: Path) -> set[str]:
    """Images by their numbers, one a line. Raises DataError for a line that is none."""
    found = set()
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if own := line.strip():
            if not own.isascii() or not own.isdigit() or len(own) > 20:
                raise DataError(f"{path}:{number}: '{own:.40}' is no image's number; write one a line")
            found.add(str(int(own)))
    return found


def numbers(value: Any, count: int, name: str) -> tuple[float, ...]:
    """Finite numbers. Raises DataError that calls them `name`."""
    good = isinstance(value, list | tuple) and len(value) == count
    if not good or not all(
        isinstance(one, int | float) and not isinstance(one, bool) and abs(one) < 1e9 for one in value
    ):
        raise DataError(f"{name} must be {count} numbers, and is {_short(value)}")
    return tuple(map(float, value))


def _short(value: Any) -> str:
    """A value for an error, but never one that is long to write."""
    if isinstance(value, list | tuple):
        plain = len(value) <= 8 and all(isinstance(one, int | float | str | None) for one in value)
        return f"{list(value)!r:.60}" if plain else f"a list of {len(value)}"
    return f"{value!r:.60}" if isinstance(value, int | float | str | None) else f"a {type(value).__name__}"
