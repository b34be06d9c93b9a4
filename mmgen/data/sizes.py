"""The sizes of a source's training examples as arrays, from which a step's plan follows: pairs, ids, about how many
slots their rows take."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ..tensors import Example
from .seeds import RngKey, hash_ids

if TYPE_CHECKING:
    from .collate import Collator

CHUNK = 4096  # examples whose ids are hashed at a time


class Alternatives:
    """About how many slots the alternatives of one input take, for n examples; a ragged array.

    counts  (n) alternatives of every example; 0 for an example whose input has one value
    slots   of all alternatives, example after example
    """

    def __init__(self) -> None:
        self.counts, self.slots = array("I"), array("f")

    def add(self, number: int, slots: Iterable[float], count: int) -> None:
        """The alternatives of the example with this number, after those of earlier examples."""
        self.counts.extend([0] * (number - len(self.counts)))
        self.counts.append(count)
        self.slots.extend(slots)

    def drawn(self, ids: np.ndarray, key: RngKey, epoch: int, field: str) -> np.ndarray:
        """(n) slots of the alternatives that the examples show in an epoch, as `RngKey.resolve` draws them."""
        counts = np.zeros(len(ids), np.uint32)
        counts[: len(self.counts)] = self.counts
        (places,) = counts.nonzero()
        counts = counts[places]
        ends = np.cumsum(counts, dtype=np.int64)
        drawn = np.zeros(len(ids), np.float32)
        chosen = key.choose(ids[places], counts, epoch, field)
        drawn[places] = np.frombuffer(self.slots, np.float32)[ends - counts + chosen]
        return drawn


class Sizes:
    """The sizes of n examples, of which some inputs may have alternatives.

    pairs         (n) what each example counts in `batch_size`
    ids           (n) hashes of the ids
    fixed         (n) slots that a row always has
    alternatives  the rest of the slots, by the input that has alternatives
    """

    def __init__(self, examples: Iterable[Example], collate: Collator) -> None:
        """Measures the examples, in order; each is read once."""
        pairs, fixed, ids, hashes = array("i"), array("f"), list[str](), list[np.ndarray]()
        measures, separators = collate.measures(), len(collate.readers)
        self.alternatives = {field: Alternatives() for field in measures}
        for number, example in enumerate(examples):
            ids.append(example.id)
            if len(ids) == CHUNK:
                hashes.append(hash_ids(ids))
                ids.clear()
            pairs.append(collate.pairs(example))
            slots = separators + collate.tail(example)
            for field, measure in measures.items():
                value = example.inputs.get(field)
                if isinstance(value, tuple) and len(value) > 1:
                    self.alternatives[field].add(number, map(measure, value), len(value))
                else:
                    slots += sum(map(measure, value if isinstance(value, tuple) else example.shown(field)))
            fixed.append(slots)
        self.pairs, self.fixed = np.array(pairs, np.int32), np.array(fixed, np.float32)
        self.ids = np.concatenate([*hashes, hash_ids(ids)])

    def __len__(self) -> int:
        return len(self.pairs)

    def slots(self, key: RngKey, epoch: int) -> np.ndarray:
        """(n) float32: about how many slots each row takes in one epoch."""
        slots = self.fixed.copy()
        for field, alternatives in self.alternatives.items():
            if alternatives.counts:
                slots += alternatives.drawn(self.ids, key, epoch, field)
        return slots
