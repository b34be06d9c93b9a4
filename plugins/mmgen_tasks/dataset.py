"""The base of the tasks' published data sets: counts examples left out; refuses an example that is in two splits."""

from __future__ import annotations

import abc
import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mmgen_vision import coco
from mmgen_vision.published import EmptySplit, PublishedFiles, Split, counted

from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.reading.text import read_text

if TYPE_CHECKING:
    from mmgen_vision.configs import Published

REASONS = {  # why an example is left out of a split -> the words of the log
    "without_picture": "example{s} without a picture",
    "without_text": "example{s} without a text",
    **coco.LEFT_OUT,
    "without_answers": "question{s} without answers",
    "without_box": "{what}{s} without a box",
    "without_phrase": "caption{s} without a phrase that has one",
}

log = logging.getLogger("mmgen")


class CountedExamples(NamedTuple):
    """The examples of a split's files. `counts`: how many were left out, by reason (the keys of `REASONS`)."""

    examples: list[Example]
    counts: Counter[str]


class PublishedDataset(PublishedFiles):
    """A task's data set. `boxed`: the noun, in messages, for what may lack a box."""

    boxed: str = "example"

    def __init__(self, config: Published) -> None:
        super().__init__(config)
        self._split_of: dict[str, str] = {}  # id of an example -> the split that has it

    def main_file(self, split: str) -> Path:
        """The file that lists the examples of a split; the split's only file where `find` returns a path."""
        path: Path = self.files[split]
        return path

    @abc.abstractmethod
    def read(self, split: str) -> CountedExamples:
        """The examples of a split, including those without a picture. Raises DataError."""

    def load(self, name: str) -> Split:
        """The examples that remain. Examples that are left out are counted and logged once."""
        examples, counts = self.read(name)
        absent = dict.fromkeys(
            key
            for example in (examples if self.config.images is not None else ())
            for key in example.shown("image")
            if key not in self.pictures_at
        )
        if absent and self.config.missing == "error":
            raise DataError(
                f"{self.name} {name}: images missing from {self.config.folder / (self.config.images or '')}: "
                f'{len(absent):,} (first: {next(iter(absent))}); set missing = "drop" to leave their examples out, or '
                '"keep" to keep them'
            )
        if absent and self.config.missing == "drop":
            remaining = [example for example in examples if not absent.keys() & set(example.shown("image"))]
            counts["without_picture"] += len(examples) - len(remaining)
            examples = remaining
        lacking = {"without_picture": [*absent]} if absent else {}
        left_out = counted(counts, {reason: REASONS[reason] for reason in counts}, self.boxed)
        if not examples:
            raise EmptySplit(
                f"{self.main_file(name)}: no examples remain for the split '{name}': {left_out or 'the file is empty'}",
                lacking,
            )
        self._check_other_splits(name, examples)
        if left_out:
            log.warning("%s %s: left out %s", self.name, name, left_out)
        return Split(examples, counts, lacking)

    def _check_other_splits(self, name: str, examples: Sequence[Example]) -> None:
        """Raises DataError for an example that is also in another split."""
        for example in examples:
            split = self._split_of.setdefault(example.id, name)
            if split != name:
                raise DataError(
                    f"{self.main_file(name)}: '{example.id}' is also in the split '{split}' ({self.main_file(split)}); "
                    "an example must be in one split only"
                )


def read_images(path: Path) -> set[str]:
    """Image numbers, one per line. Raises DataError for a line that is not a number."""
    image_numbers = set()
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if image_number := line.strip():
            if not image_number.isascii() or not image_number.isdigit() or len(image_number) > 20:
                raise DataError(
                    f"{path}:{number}: '{image_number:.40}' is not an image number; write one number per line"
                )
            image_numbers.add(str(int(image_number)))
    return image_numbers


def numbers(value: Any, count: int, name: str) -> tuple[float, ...]:
    """`count` finite numbers. Raises DataError whose message calls them `name`."""
    has_length = isinstance(value, list | tuple) and len(value) == count
    if not has_length or not all(
        isinstance(number, int | float) and not isinstance(number, bool) and abs(number) < 1e9 for number in value
    ):
        raise DataError(f"{name} must be {count} numbers, not {_shorten(value)}")
    return tuple(map(float, value))


def _shorten(value: Any) -> str:
    """A value as an error message shows it, shortened."""
    if isinstance(value, list | tuple):
        plain = len(value) <= 8 and all(isinstance(item, int | float | str | None) for item in value)
        return f"{list(value)!r:.60}" if plain else f"a list of {len(value)}"
    return f"{value!r:.60}" if isinstance(value, int | float | str | None) else f"a {type(value).__name__}"
