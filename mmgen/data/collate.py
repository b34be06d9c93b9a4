"""Collates examples into batches in workers: reads, masks, augments; counts pairs and slots; sorts by length."""

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
from .seeds import RngKey, resolve, share_a_picture
from .sizes import Sizes

if TYPE_CHECKING:
    from ..model import Model

TRIES = 100  # draws of an example of another picture


@dataclass(frozen=True)
class ReadRow:
    """One row of a future batch.

    items   input name -> item of its reader
    epoch   the epoch for random draws; None outside training
    number  index among the rows of its example
    """

    example: ResolvedExample
    items: Mapping[str, Any]
    epoch: object
    number: int


@dataclass(frozen=True)
class ReadExample:
    """An example whose inputs have been read. Most examples have one row."""

    id: str
    rows: Sequence[ReadRow]


class Collator:
    """Examples -> Batch. Holds only readers: no parameters, nothing on a device.

    inputs      names of the inputs a step reads, in the recipe's order
    objectives  names of the objectives; empty if a model only reads or writes
    place       the seed and the step for random draws
    candidates  the examples among which an objective draws one of another picture; `Rows` has them. They are dropped if
                no objective reads them, since loader workers may get copies
    predicting  whether the objectives predict: labels are ignored, and nothing is hidden
    """

    def __init__(
        self,
        model: Model,
        inputs: Sequence[str],
        objectives: Sequence[str] = (GENERATOR,),
        place: RngKey | None = None,
        candidates: Sequence[Example] = (),
        predicting: bool = False,
    ) -> None:
        self.readers = {name: model.embedders[name].reader for name in model.inputs if name in inputs}
        self.targets = {name: model.objective(name).reader for name in objectives}
        self.fields = {name: model.fields.get(name, (name,)) for name in self.readers}
        self.place, self.predicting = place or RngKey(), predicting
        needed = any(reader.makes_rows or reader.reads_candidates for reader in self.targets.values())
        self.candidates = candidates if needed else ()
        readers = {} if predicting else self.targets
        hiding = [
            (name, input_name, how) for name, r in readers.items() for input_name, how in r.hides(self.readers).items()
        ]
        self.hiding = {field: (name, how) for name, field, how in hiding}  # input -> the objective that hides it, how

    def __call__(self, examples: Sequence[Example], epochs: Sequence[object] | None = None) -> Batch:
        """`epochs`: the epoch of every example for random draws; by default None, as in validation and writing, where
        every epoch is the same."""
        epochs = epochs or [None] * len(examples)
        return self.batch([self.read(example, epoch) for example, epoch in zip(examples, epochs, strict=True)])

    def read(self, example: Example, epoch: object = None) -> ReadExample:
        """Reads one example: draws alternatives and reads every input. `epoch`: see `__call__`."""
        rows = self._make_rows(example, epoch)  # of all alternatives, in training and outside of it
        resolved = [self._augment(self.place.resolve(row, epoch), epoch) for row in rows]
        read = [{name: reader.read(row.seen_by(name)) for name, reader in self.readers.items()} for row in resolved]
        numbered = enumerate(zip(resolved, read, strict=True))
        return ReadExample(example.id, [ReadRow(row, items, epoch, number) for number, (row, items) in numbered])

    def _augment(self, example: ResolvedExample, epoch: object) -> ResolvedExample:
        """The example, in training as its readers augment it. Inputs that read one field get equal draws."""
        for name, reader in self.readers.items() if epoch is not None else ():
            if type(reader).augment is not Reader.augment:
                draw = self.place.draw(example, epoch, "augment")
                example = reader.augment(example, name, draw)
        return example

    def batch(self, examples: Sequence[ReadExample]) -> Batch:
        """One batch of examples that `read` returned."""
        rows = [row for example in examples for row in example.rows]
        inputs: dict[str, Any] = {}
        hidden: dict[str, dict[str, Tensor]] = {name: {} for name in self.targets}
        for name, reader in self.readers.items():
            items = [row.items[name] for row in rows]
            if name in self.hiding:
                owner, how = self.hiding[name]
                draws = [self._random_of(rows, owner, place, name) for place in range(len(rows))]
                items, hidden[owner][name] = _hide_and_label(reader, items, draws, how)
            inputs[name] = reader.collate(items)
        targets = {}
        resolved = [row.example for row in rows]
        for name, objective in self.targets.items():
            draw = partial(self._random_of, rows, name)
            objective_rows = Rows(resolved, draw, hidden[name], inputs, self.readers, self.candidates)
            targets[name] = (objective.ask if self.predicting else objective.collate)(objective_rows)
        places = [place for place, example in enumerate(examples) for _ in example.rows]
        has_extra_rows = len(rows) > len(examples)
        return Batch(tuple(example.id for example in examples), inputs, targets, tuple(places) * has_extra_rows)

    def _random_of(self, rows: Sequence[ReadRow], name: str, place: int, *more: str) -> random.Random:
        row = rows[place]
        number = [str(row.number)] * bool(
            row.number
        )  # rows of an example have separate draws, so that its choices are not all hidden alike
        return self.place.draw(row.example, row.epoch, name, *more, *number)

    def _make_rows(self, example: Example, epoch: object) -> Sequence[Example]:
        for name, reader in self.targets.items():
            if reader.makes_rows:
                draw = self.place.draw(example, epoch, name, "rows")
                return reader.rows(example, draw, partial(self._draw_other_picture, example, draw))
        return [example]

    def _draw_other_picture(self, example: Example, draw: random.Random) -> Example:
        """An example of another picture. Raises DataError if all show the same picture."""
        for _ in range(TRIES if self.candidates else 0):
            candidate = draw.choice(self.candidates)
            if not share_a_picture(example, candidate):
                return candidate
        raise DataError(f"example '{example.id}': no other picture was found to take a text from")

    @property
    def losses(self) -> tuple[str, ...]:
        """Names of all losses, as in `Batch.counts`."""
        return tuple(f"{name}.{loss}" for name, reader in self.targets.items() for loss in reader.losses)

    def pairs(self, example: Example) -> int:
        """How much an example counts in `batch_size`."""
        return max((reader.pairs(example) for reader in self.targets.values()), default=1)

    def slots(self, examples: Sequence[Example]) -> list[float]:
        """About how many slots each example's row takes outside training."""
        slots: list[float] = Sizes([resolve(example) for example in examples], self).fixed.tolist()
        return slots

    def tail(self, example: Example) -> float:
        """About how many slots follow the example's prefix."""
        return sum(reader.length(example) for reader in self.targets.values())

    def measures(self) -> dict[str, Callable[[Any], float]]:
        """For every field that inputs read: about how many slots a value of it takes."""
        readers: dict[str, list[Reader]] = {}
        for name, reader in self.readers.items():
            for field in self.fields[name]:
                readers.setdefault(field, []).append(reader)
        return {
            field: several[0].slots if len(several) == 1 else _sum_of(several) for field, several in readers.items()
        }


def _sum_of(readers: Sequence[Reader]) -> Callable[[Any], float]:
    return lambda value: sum(reader.slots(value) for reader in readers)


def _hide_and_label(
    reader: Reader, items: Sequence[Any], draws: Sequence[random.Random], how: Hiding
) -> tuple[list[Any], Tensor]:
    """Items with parts hidden, and the labels of these parts, padded with -100: (B, N) or (B, N, C)."""
    pairs = [reader.hide(item, draw, how) for item, draw in zip(items, draws, strict=True)]
    return [item for item, _ in pairs], pad_sequence([label for _, label in pairs], True, -100)


def by_length(slots: Sequence[float], batch_size: int) -> Iterator[list[int]]:
    """Indices of examples in batches for evaluation, sorted by the slots of their rows."""
    order = sorted(range(len(slots)), key=lambda index: (slots[index], index))
    for first in range(0, len(order), batch_size):
        yield order[first : first + batch_size]
