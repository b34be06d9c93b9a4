"""The sizes of a source's training examples (pairs, slots) as arrays, from which a step's plan follows."""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..tensors import Example, ResolvedExample
from .seeds import RngKey, resolve

if TYPE_CHECKING:
    from .collate import Collator

MOST_COMBINATIONS = 64  # of an example's alternatives that are measured; an example with more is resolved every epoch
CHUNK = 4096  # examples in memory at a time


class Measures:
    """The sizes of n examples. Bytes of an example: 12, with alternatives about 30 and 8 for each combination.

    pairs   (n) what each example counts in `batch_size`
    slots   about how many slots each row takes, for every combination of the example's alternatives; (n) where no
            example has alternatives
    starts  (n) where the combinations of an example begin in `slots`; empty where no example has alternatives
    shapes  (n) numbers of `counts`
    counts  the different tuples of numbers of alternatives, in the order of an example's inputs
    ids     the ids, one after the other, as UTF-8; they end at `ends`
    """

    def __init__(self, collate: Collator, sized: bool = True) -> None:
        """`sized`: whether slots are measured; else every row counts as 1 slot."""
        self.collate, self.sized = collate, sized
        self.pairs, self.slots = array("i"), array("d")
        self.starts, self.shapes, self.ends, self.ids = array("q"), array("i"), array("q"), bytearray()
        self.counts: dict[tuple[int, ...], int] = {(): 0}
        self.complete = True  # whether `slots` has every combination

    @classmethod
    def of(cls, examples: Iterable[Example], collate: Collator, sized: bool = True) -> Measures:
        """The sizes of examples, measured in order."""
        measures = cls(collate, sized)
        for chunk in chunks(examples):
            measures.add(chunk)
        return measures

    def add(self, examples: Sequence[Example]) -> None:
        """Measure further examples."""
        self.pairs.extend(map(self.collate.pairs, examples))
        if not self.sized:
            self.slots.extend([1.0] * len(examples))
            return
        prefix = self.collate.prefix
        for example, tail in zip(examples, self.collate.tails(examples), strict=True):
            alternatives = {name: value for name, value in example.inputs.items() if value and isinstance(value, tuple)}
            if self.shapes or alternatives:
                self._add_shape(example.id, tuple(map(len, alternatives.values())))
            if not alternatives or isinstance(example, ResolvedExample):
                self.slots.append(prefix(resolve(example)) + tail)
                continue
            combinations = itertools.islice(itertools.product(*alternatives.values()), MOST_COMBINATIONS)
            for values in combinations:
                inputs = {**example.inputs, **dict(zip(alternatives, values, strict=True))}
                self.slots.append(prefix(resolve(replace(example, inputs=inputs))) + tail)

    def _add_shape(self, id_: str, shape: tuple[int, ...]) -> None:
        """How many alternatives the inputs of an example have, and where its slots begin."""
        if not self.shapes:  # it is the first example with alternatives
            before = len(self.slots)
            self.starts, self.shapes = array("q", range(before)), array("i", [0]) * before
            self.ends = array("q", [0]) * before
        self.complete &= math.prod(shape) <= MOST_COMBINATIONS
        self.starts.append(len(self.slots))
        self.shapes.append(self.counts.setdefault(shape, len(self.counts)))
        self.ids += id_.encode("utf-8", "surrogatepass") if shape else b""
        self.ends.append(len(self.ids))

    def __len__(self) -> int:
        return len(self.pairs)

    def slots_in(self, epoch: int, place: RngKey) -> array[float]:
        """(n) slots of every row in one epoch, with one of each input's alternatives drawn as `RngKey.resolve` does.
        Only where `complete`."""
        if not self.shapes:
            return self.slots
        counts, slots = list(self.counts), array("d")
        first = 0
        for start, shape, end in zip(self.starts, self.shapes, self.ends, strict=True):
            combination = 0
            if shape:
                draw = place.generator(self.ids[first:end].decode("utf-8", "surrogatepass"), epoch)
                for count in counts[shape]:
                    combination = combination * count + draw.choice(range(count))
            slots.append(self.slots[start + combination])
            first = end
        return slots


def chunks(examples: Iterable[Example], size: int = CHUNK) -> Iterator[Sequence[Example]]:
    """The examples in order, some at a time; each is made once."""
    source = iter(examples)
    while chunk := list(itertools.islice(source, size)):
        yield chunk
