"""The sizes of a source's training examples as arrays, from which a step's plan follows: pairs, ids, about how many
slots their rows take."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..examples import All, Example
from .seeds import RngKey, hash_id

if TYPE_CHECKING:
    from .collate import Collator

CHUNK = 4096  # examples in memory at a time, where a data set makes them


class Alternatives:
    """About how many slots the alternatives of one input take, for n examples; a ragged array.

    counts  (n) alternatives of every example; 0 where the input has one value, or none
    slots   of all alternatives, example after example
    """

    def __init__(self) -> None:
        self.counts, self.slots = array("I"), array("f")

    def add(self, value: Any, measure: Callable[[Any], float]) -> float:
        """Note the input's value in the next example. Returns the slots that the example always has."""
        if isinstance(value, tuple) and len(value) > 1:
            self.counts.append(len(value))
            self.slots.extend(map(measure, value))
            return 0
        self.counts.append(0)
        values = value.values if isinstance(value, All) else value if isinstance(value, tuple) else (value,)
        return 0 if value is None else sum(map(measure, values))

    def add_drawn(self, slots: np.ndarray, ids: np.ndarray, key: RngKey, epoch: int, field: str) -> None:
        """Adds to (n) slots those of the alternatives that the examples show in an epoch, as `RngKey.resolve` draws
        them. In chunks, so that it takes no memory."""
        counts, measured, end = np.frombuffer(self.counts, np.uint32), np.frombuffer(self.slots, np.float32), 0
        for first in range(0, len(ids), CHUNK):
            chunk = slice(first, first + CHUNK)
            (places,) = counts[chunk].nonzero()
            count = counts[chunk][places]
            ends = end + np.cumsum(count, dtype=np.int64)
            chosen = key.choose(ids[chunk][places], count, epoch, field).astype(np.int64)
            slots[chunk][places] += measured[ends - count + chosen]
            end += int(count.sum())


class Sizes:
    """The sizes of n examples, of which some inputs may have alternatives.

    pairs         (n) what each example counts in `batch_size`
    ids           (n) hashes of the ids
    fixed         (n) slots that a row always has
    alternatives  the rest of the slots: (field, its alternatives) of every input that has some
    """

    def __init__(self, examples: Iterable[Example], collate: Collator) -> None:
        """Measures the examples, in order; each is read once."""
        alternatives = [
            (field, reader.slots, Alternatives())
            for name, reader in collate.readers.items()
            for field in collate.fields[name]
        ]
        pairs, fixed, ids = array("i"), array("f"), array("Q")
        for example in examples:
            pairs.append(collate.pairs(example))
            ids.append(hash_id(example.id))
            tail = sum(reader.length(example) for reader in collate.targets.values())
            slots = np.float32(tail) + np.float32(len(collate.readers))
            for field, measure, of_input in alternatives:
                slots += np.float32(of_input.add(example.inputs.get(field), measure))
            fixed.append(slots.item())
        self.pairs, self.fixed = np.frombuffer(pairs, np.int32), np.frombuffer(fixed, np.float32)
        self.ids = np.frombuffer(ids, np.uint64)
        self.alternatives = [(field, of_input) for field, _, of_input in alternatives if of_input.slots]

    def __len__(self) -> int:
        return len(self.pairs)

    def slots(self, key: RngKey, epoch: int) -> np.ndarray:
        """(n) float32: about how many slots each row takes in one epoch."""
        slots = self.fixed.copy()
        for field, alternatives in self.alternatives:
            alternatives.add_drawn(slots, self.ids, key, epoch, field)
        return slots
