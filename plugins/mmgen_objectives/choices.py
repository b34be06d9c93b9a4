"""The objective of VCR, multiple choice: a row per choice; the pooled states of an example's rows are compared."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmgen.errors import DataError
from mmgen.examples import All, Example, Prediction
from mmgen.objectives import Rows, Sequencer, TargetReader
from mmgen.parts import Backbone
from mmgen.tensors import Batch, Loss, Targets

from . import MultipleChoice
from .heads import Head, label_of

CHOICES, MENTIONS, CHOICE = "choices", "choice_mentions", "choice"  # labels of an example
PLACE = "place"  # label of a row: the position of its choice
PRESENT = "present"  # (examples, choices): which choices each example has


def choices_of(example: Example, field: str = "") -> Sequence[str]:
    """The choices of an example: its label, or else the value of this field. Raises DataError."""
    choices: Any = example.labels.get(CHOICES) or example.inputs.get(field)
    if not choices:
        raise DataError(f"example '{example.id}' has no {CHOICES}")
    if not isinstance(choices, list | tuple) or not all(isinstance(choice, str) for choice in choices):
        raise DataError(
            f"example '{example.id}': '{CHOICES}' must be a list of strings, e.g. [\"the first\", \"the second\"]"
        )
    return choices


class Choices(TargetReader):
    """Makes one row per choice, in loader workers."""

    def __init__(self, config: MultipleChoice) -> None:
        self.field, self.by_row = config.choice, config.loss == "bce"

    def rows(self, example: Example, draw: random.Random, draw_other: Callable[[], Example]) -> Sequence[Example]:
        choices = choices_of(example, self.field)
        right = example.labels.get(CHOICE)
        if right is not None and right not in range(len(choices)):
            raise DataError(f"example '{example.id}': choice must be from 0 to {len(choices) - 1}, not {right!s:.20}")
        mentions = example.labels.get(MENTIONS) or [None] * len(choices)
        if len(mentions) != len(choices):
            raise DataError(
                f"example '{example.id}' has {len(choices)} {CHOICES} but {len(mentions)} {MENTIONS}; give one per "
                "choice"
            )
        choice_rows = []
        for place, (choice, mentioned) in enumerate(zip(choices, mentions, strict=True)):
            inputs = {**example.inputs, self.field: choice}
            if mentioned is not None:
                inputs[f"{self.field}_mentions"] = All(tuple(mentioned))
            choice_rows.append(replace(example, inputs=inputs, labels={**example.labels, PLACE: place}))
        return choice_rows

    def collate(self, rows: Rows) -> Targets:
        table = self.ask(rows).labels
        right = table[PLACE] == torch.tensor([label_of(row, CHOICE) for row in rows.examples])
        count = len(right) if self.by_row else len(table[PRESENT])
        return Targets({"loss": count}, {**table, CHOICE: right.float()})

    def ask(self, rows: Rows) -> Targets:
        """The position of every row's choice, and which choices each example has."""
        places = torch.tensor([row.labels[PLACE] for row in rows.examples])
        examples = _example_of_rows(places)
        present = torch.zeros(int(examples[-1]) + 1, int(places.max()) + 1, dtype=torch.bool)
        present[examples, places] = True
        return Targets({}, {PLACE: places, PRESENT: present})


class MultipleChoiceObjective(Head):
    """Owns the head: (B, H) pooled states -> (B, 1) logits."""

    def __init__(self, config: MultipleChoice, backbone: Backbone) -> None:
        super().__init__(config, Choices(config), nn.Linear(backbone.hidden_size, 1))

    def choice_logits(self, model: Sequencer, batch: Batch, targets: Targets) -> Tensor:
        """Logits (examples, choices); -inf where an example has fewer choices than the longest."""
        logits, places = self.logits(model, batch).squeeze(-1), targets.labels[PLACE]  # (B,)
        table = logits.new_full(targets.labels[PRESENT].shape, float("-inf"))
        return table.index_put((_example_of_rows(places), places), logits)

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        places, right = targets.labels[PLACE], targets.labels[CHOICE]
        logits, examples = self.choice_logits(model, batch, targets), _example_of_rows(places)
        if self.config.loss == "softmax":
            return Loss({"loss": -(logits.log_softmax(-1)[examples, places] * right).sum()})
        row_logits = logits[examples, places]
        return Loss({"loss": F.binary_cross_entropy_with_logits(row_logits, right, reduction="sum")})

    def predict(self, model: Sequencer, batch: Batch, targets: Targets) -> list[Prediction]:
        logits = self.choice_logits(model, batch, targets)
        shares = logits.softmax(-1) if self.config.loss == "softmax" else logits.sigmoid()
        counts = targets.labels[PRESENT].sum(1).tolist()
        predictions = []
        for name, row, count in zip(batch.ids, shares.tolist(), counts, strict=True):
            best = max(range(count), key=row.__getitem__)
            predictions.append(Prediction(name, {"choice": best, "probabilities": row[:count]}, row[best]))
        return predictions


def _example_of_rows(places: Tensor) -> Tensor:
    """(B,) the example of each row. Rows of an example are adjacent, the first choice first."""
    return (places == 0).cumsum(0) - 1
