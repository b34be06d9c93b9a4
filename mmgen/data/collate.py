"""Collate: examples to batches, in the loader's workers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..errors import DataError
from ..objectives import Rows
from ..parts import Reader
from ..recipe.tables import GENERATOR
from ..tensors import Batch, Example, Hiding, ResolvedExample
from .checked import check_targets
from .seeds import Place, resolve, share_a_picture

if TYPE_CHECKING:
    from ..model import Model

TRIES = 100  # draws of an example of another picture


@dataclass(frozen=True)
class ReadRow:
    """One row of a batch to be.

    items   input name -> what its reader read
    which   the pass over the data that random draws follow from; None where nothing is trained
    number  its place among the rows of its example
    """

    example: ResolvedExample
    items: Mapping[str, Any]
    which: object
    number: int


@dataclass(frozen=True)
class ReadExample:
    """An example whose inputs have been read: its rows, mostly one."""

    id: str
    rows: Sequence[ReadRow]


class Collator:
    """Examples -> Batch. Holds readers alone: nothing that has parameters or lives on a device.

    inputs      names of the inputs a step reads, in the recipe's order
    objectives  names of what it learns; none where a model only reads or writes
    place       what random draws follow from, beside the pass over the data and the example
    others      the examples among which an objective looks for another picture's
    asks        whether the objectives are to predict: labels are not looked at, and nothing is hidden
    """

    def __init__(
        self,
        model: Model,
        inputs: Sequence[str],
        objectives: Sequence[str] = (GENERATOR,),
        place: Place | None = None,
        others: Sequence[Example] = (),
        asks: bool = False,
    ) -> None:
        self.readers = {name: model.embedders[name].reader for name in model.inputs if name in inputs}
        self.targets = {name: model.objective(name).reader for name in objectives}
        self.place, self.others, self.asks = place or Place(), others, asks
        readers = {} if asks else self.targets
        hiding = [(name, each, how) for name, r in readers.items() for each, how in r.hides(self.readers).items()]
        self.hiding = {each: (name, how) for name, each, how in hiding}  # input -> which objective hides it, and how

    def __call__(self, examples: Sequence[Example], passes: Sequence[object] | None = None) -> Batch:
        """`passes`: of every example, which pass over the data this is; by default they are validated or written for,
        where every pass is the same."""
        passes = passes or [None] * len(examples)
        return self.batch([self.read(example, which) for example, which in zip(examples, passes, strict=True)])

    def read(self, example: Example, which: object = None) -> ReadExample:
        """One example, alternatives drawn and every input read. `which`: see `__call__`."""
        rows = self._rows(example if which is not None else resolve(example), which)
        resolved = [self.place.resolve(row, which) for row in rows]
        read = [{name: reader.read(row.seen_by(name)) for name, reader in self.readers.items()} for row in resolved]
        numbered = enumerate(zip(resolved, read, strict=True))
        return ReadExample(example.id, [ReadRow(row, items, which, number) for number, (row, items) in numbered])

    def batch(self, examples: Sequence[ReadExample]) -> Batch:
        """What `read` gave for every example, as one batch."""
        rows = [row for example in examples for row in example.rows]
        inputs: dict[str, Any] = {}
        hidden: dict[str, dict[str, Tensor]] = {name: {} for name in self.targets}
        for name, reader in self.readers.items():
            items = [row.items[name] for row in rows]
            if name in self.hiding:
                owner, how = self.hiding[name]
                draws = [self._draw(rows, owner, place, name) for place in range(len(rows))]
                items, hidden[owner][name] = _hide(reader, items, draws, how)
            inputs[name] = reader.collate(items)
        targets = {}
        resolved = [row.example for row in rows]
        for name, objective in self.targets.items():
            of_objective = Rows(resolved, partial(self._draw, rows, name), hidden[name], inputs)
            collated = objective.ask(of_objective) if self.asks else objective.collate(of_objective)
            targets[name] = check_targets(collated, name, objective, self.asks)
        places = [place for place, example in enumerate(examples) for _ in example.rows]
        several = len(rows) > len(examples)
        return Batch(tuple(example.id for example in examples), inputs, targets, tuple(places) * several)

    def _draw(self, rows: Sequence[ReadRow], name: str, place: int, *more: str) -> random.Random:
        row = rows[place]
        number = [str(row.number)] * bool(
            row.number
        )  # an example's rows draw apart: its choices are not all hidden alike
        return self.place.draw(row.example, row.which, name, *more, *number)

    def _rows(self, example: Example, which: object) -> Sequence[Example]:
        for name, reader in self.targets.items():
            if reader.makes_rows:
                draw = self.place.draw(example, which, name, "rows")
                return reader.rows(example, draw, partial(self._other, example, draw))
        return [example]

    def _other(self, example: Example, draw: random.Random) -> Example:
        """An example of another picture. Raises DataError where all show the same."""
        for _ in range(TRIES if self.others else 0):
            other = draw.choice(self.others)
            if not share_a_picture(example, other):
                return other
        raise DataError(f"no other picture than that of example '{example.id}' was found to take a text from")

    @property
    def losses(self) -> tuple[str, ...]:
        """Names of all losses, as `Batch.counts` has them."""
        return tuple(f"{name}.{loss}" for name, reader in self.targets.items() for loss in reader.losses)

    def pairs(self, example: Example) -> int:
        """What `batch_size` counts of an example."""
        return max((reader.pairs(example) for reader in self.targets.values()), default=1)

    @property
    def halves(self) -> Callable[[Example], list[Example]]:
        """How a single example is cut in two. What several objectives learn from is not: each half would be counted
        anew by those that do not look at targets."""
        (first, *others) = self.targets.values()
        return first.halves if not others else lambda example: [example]

    def slots(self, examples: Sequence[Example]) -> list[float]:
        """About how many slots each example's row takes when it is not trained on: its prefix and what stands behind
        it."""
        resolved = [resolve(example) for example in examples]
        return [self.prefix(example) + tail for example, tail in zip(resolved, self.tails(resolved), strict=True)]

    def prefix(self, example: ResolvedExample) -> float:
        """About how many slots a resolved example's prefix takes."""
        return sum(1 + reader.slots(example.seen_by(name)) for name, reader in self.readers.items())

    def tails(self, examples: Sequence[Example]) -> list[float]:
        """How many slots stand behind each example's prefix."""
        lengths = [reader.lengths(examples) for reader in self.targets.values()]
        return [sum(each) for each in zip(*lengths, strict=True)] if lengths else [0.0] * len(examples)


def _hide(
    reader: Reader, items: Sequence[Any], draws: Sequence[random.Random], how: Hiding
) -> tuple[list[Any], Tensor]:
    """Items with parts of them hidden, and what stood there, padded with -100: (B, N) or (B, N, C)."""
    pairs = [reader.hide(item, draw, how) for item, draw in zip(items, draws, strict=True)]
    return [item for item, _ in pairs], pad_sequence([label for _, label in pairs], True, -100)


def by_length(slots: Sequence[float], batch_size: int) -> Iterator[list[int]]:
    """Indices of examples in batches for evaluation; those whose rows take as many slots go together."""
    order = sorted(range(len(slots)), key=lambda index: (slots[index], index))
    for first in range(0, len(order), batch_size):
        yield order[first : first + batch_size]
