"""What the tasks' published data sets share: what is left out of a split is counted, and reported once."""

from __future__ import annotations

import abc
import logging
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from mmgen_vl.published import PublishedFiles, Split, counted

from mmgen.errors import DataError
from mmgen.reading.text import read_text
from mmgen.tensors import Example

ODD = {  # what is left out of a split -> how it is told
    "without_picture": "example{s} without a picture",
    "without_text": "example{s} without a text",
    "duplicate_captions": "repeated caption{s}",
    "without_answers": "question{s} without answers",
    "without_box": "{what}{s} without a box",
    "without_phrase": "caption{s} without a phrase that has one",
}

log = logging.getLogger("mmgen")


class Read(NamedTuple):
    """A split as its files have it. `counts`: what was left out, by names of `ODD`."""

    examples: list[Example]
    counts: Counter[str]


class PublishedDataset(PublishedFiles):
    """A task's data set. `boxed`: what may lack a box, in words."""

    boxed: str = "example"

    def named(self, split: str) -> Path:
        """The file that tells which examples a split has: its only one, where `find` gives a path."""
        path: Path = self.files[split]
        return path

    @abc.abstractmethod
    def read(self, split: str) -> Read:
        """The examples of a split, those without a picture among them. Raises DataError."""

    def load(self, name: str) -> Split:
        """Those examples that are kept. What is left out is counted, and said once."""
        examples, counts = self.read(name)
        absent = dict.fromkeys(
            key
            for example in (examples if self.config.images is not None else ())
            for key in example.shown("image")
            if key not in self.pictures_at
        )
        if absent and self.config.missing == "error":
            raise DataError(
                f"{self.name} {name}: {len(absent):,} of its images are not in "
                f"{self.config.folder / (self.config.images or '')}, {next(iter(absent))} the first; set missing = "
                '"drop" to leave their examples out, or "keep"'
            )
        if absent and self.config.missing == "drop":
            kept = [example for example in examples if not absent.keys() & set(example.shown("image"))]
            counts["without_picture"] += len(examples) - len(kept)
            examples = kept
        left_out = counted(counts, {reason: ODD[reason] for reason in counts}, self.boxed)
        if not examples:
            raise DataError(
                f"{self.named(name)}: no example is left for the split '{name}': {left_out or 'it is empty'}"
            )
        if left_out:
            log.warning("%s %s: left out %s", self.name, name, left_out)
        return Split(examples, counts, {"without_picture": [*absent]} if absent else {})


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
