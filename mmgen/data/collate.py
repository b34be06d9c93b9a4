"""The data sets of a step, and how their examples are collated into batches in workers: read, masked, augmented."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..errors import DataError
from ..examples import Example, ResolvedExample
from ..objectives import Rows
from ..parts import Reader
from ..recipe.tables import GENERATOR
from ..tensors import Batch, Hiding
from .seeds import RngKey, resolve, share_a_picture
from .sizes import Sizes

if TYPE_CHECKING:
    from ..model import Model

TRIES = 100  # draws of an example of another picture


@dataclass(frozen=True)
class Source:
    """One of the data sets that a step is trained on.

    examples    to train on
    validation  examples for the validation loss; may be empty
    share       of every update, relative to the shares of the other sources
    inputs      the step's inputs that its examples have; empty, which those of a recipe never are, means all
    objectives  the step's objectives that train on it; likewise
    name        for the log and for messages
    """

    examples: Sequence[Example]
    validation: Sequence[Example] = ()
    share: float = 1.0
    inputs: tuple[str, ...] = ()
    objectives: tuple[str, ...] = ()
    name: str = ""


@dataclass(frozen=True)
class ReadRow:
    """One row of a future batch. Most examples have one.

    items   input name -> item of its reader
    epoch   the epoch for random draws; None outside training
    number  index among the rows of its example
    """

    example: ResolvedExample
    items: Mapping[str, Any]
    epoch: object
    number: int


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
        self.hiding: dict[str, tuple[str, Hiding]] = {}  # input -> the objective that hides it, how
        for name, reader in () if predicting else self.targets.items():
            self.hiding |= {input_name: (name, how) for input_name, how in reader.hides(self.readers).items()}

    def __call__(self, examples: Sequence[Example], epochs: Sequence[object] | None = None) -> Batch:
        """`epochs`: the epoch of every example for random draws; by default None, as in validation and writing, where
        every epoch is the same."""
        return self.batch(list(map(self.read, examples, epochs or [None] * len(examples))))

    def read(self, example: Example, epoch: object = None) -> list[ReadRow]:
        """The rows of an example: draws alternatives and reads every input. `epoch`: see `__call__`."""
        rows = []
        for number, row in enumerate(self._make_rows(example, epoch)):  # of all alternatives, also outside of training
            resolved = self._augment(self.place.resolve(row, epoch), epoch)
            items = {name: reader.read(resolved.seen_by(name)) for name, reader in self.readers.items()}
            rows.append(ReadRow(resolved, items, epoch, number))
        return rows

    def _augment(self, example: ResolvedExample, epoch: object) -> ResolvedExample:
        """The example, in training as its readers augment it. Inputs that read one field get equal draws."""
        for name, reader in self.readers.items() if epoch is not None else ():
            if type(reader).augment is not Reader.augment:
                draw = self.place.draw(example, epoch, "augment")
                example = reader.augment(example, name, draw)
        return example

    def batch(self, examples: Sequence[Sequence[ReadRow]]) -> Batch:
        """One batch of examples that `read` returned."""
        rows = [row for example in examples for row in example]
        inputs: dict[str, Any] = {}
        hidden: dict[str, dict[str, Tensor]] = {name: {} for name in self.targets}
        for name, reader in self.readers.items():
            items = [row.items[name] for row in rows]
            if name in self.hiding:
                owner, how = self.hiding[name]
                draws = [self._draw(rows, owner, place, name) for place in range(len(rows))]
                pairs = [reader.hide(item, draw, how) for item, draw in zip(items, draws, strict=True)]
                items = [item for item, _ in pairs]
                hidden[owner][name] = pad_sequence([label for _, label in pairs], True, -100)  # (B, N) or (B, N, C)
            inputs[name] = reader.collate(items)
        targets = {}
        for name, objective in self.targets.items():
            objective_rows = Rows(
                [row.example for row in rows],
                partial(self._draw, rows, name),
                hidden[name],
                inputs,
                self.readers,
                self.candidates,
            )
            targets[name] = (objective.ask if self.predicting else objective.collate)(objective_rows)
        places = [place for place, example in enumerate(examples) for _ in example]
        has_extra_rows = len(rows) > len(examples)
        return Batch(
            tuple(example[0].example.id for example in examples), inputs, targets, tuple(places) * has_extra_rows
        )

    def _draw(self, rows: Sequence[ReadRow], name: str, place: int, *more: str) -> random.Random:
        """Draws for a row: those of an example have separate ones, so that its choices are not all hidden alike."""
        row = rows[place]
        return self.place.draw(row.example, row.epoch, name, *more, *[str(row.number)] * bool(row.number))

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


@dataclass(frozen=True)
class DataStream:
    """A source and the collator of its examples."""

    source: Source
    collate: Collator


def by_length(slots: Sequence[float], batch_size: int) -> Iterator[list[int]]:
    """Indices of examples in batches for evaluation, sorted by the slots of their rows."""
    order = sorted(range(len(slots)), key=lambda index: (slots[index], index))
    for first in range(0, len(order), batch_size):
        yield order[first : first + batch_size]
