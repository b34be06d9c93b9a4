"""Collate: examples to batches, in the loader's workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..tensors import Batch, Example

if TYPE_CHECKING:
    from ..model import Model

GENERATOR = "generator"  # how the recipe's generator is called among objectives


class Collator:
    """Resolved examples -> Batch. Holds readers alone: nothing that has parameters or lives on a device.

    inputs      names of the inputs a step reads, in the recipe's order
    objectives  names of what it learns; none where a model only reads or writes
    """

    def __init__(self, model: Model, inputs: Sequence[str], objectives: Sequence[str] = (GENERATOR,)) -> None:
        self.readers = {name: model.embedders[name].reader for name in model.inputs if name in inputs}
        self.targets = {name: model.objective(name).reader for name in objectives}

    def __call__(self, examples: Sequence[Example]) -> Batch:
        inputs = {
            name: reader.collate([reader.read(example.seen_by(name)) for example in examples])
            for name, reader in self.readers.items()
        }
        targets = {name: reader.collate(examples) for name, reader in self.targets.items()}
        return Batch(tuple(example.id for example in examples), inputs, targets)

    @property
    def losses(self) -> tuple[str, ...]:
        """Names of all losses, as `Batch.counts` has them."""
        return tuple(f"{name}.{loss}" for name, reader in self.targets.items() for loss in reader.losses)

    def pairs(self, example: Example) -> int:
        """What `batch_size` counts of an example."""
        return max((reader.pairs(example) for reader in self.targets.values()), default=1)

    def slots(self, examples: Sequence[Example]) -> list[float]:
        """About how many slots each resolved example's row takes: its prefix and what stands behind it."""
        return [self.prefix(example) + tail for example, tail in zip(examples, self.tails(examples), strict=True)]

    def prefix(self, example: Example) -> float:
        """About how many slots a resolved example's prefix takes."""
        return sum(1 + reader.slots(example.seen_by(name)) for name, reader in self.readers.items())

    def tails(self, examples: Sequence[Example]) -> list[float]:
        """How many slots stand behind each example's prefix."""
        lengths = [reader.lengths(examples) for reader in self.targets.values()]
        return [sum(each) for each in zip(*lengths, strict=True)] if lengths else [0.0] * len(examples)


def by_length(slots: Sequence[float], batch_size: int) -> Iterator[list[int]]:
    """Indices of examples in batches for evaluation; those whose rows take as many slots go together."""
    order = sorted(range(len(slots)), key=lambda index: (slots[index], index))
    for first in range(0, len(order), batch_size):
        yield order[first : first + batch_size]
