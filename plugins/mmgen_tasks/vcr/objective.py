"""Multiple choice: every choice is a row of its own, and the pooled states of an example's rows are compared."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from mmgen_vl.heads import published_head
from torch import Tensor, nn

from mmgen.errors import DataError, MissingLabel
from mmgen.objectives import Objective, Rows, Sequencer, TargetReader
from mmgen.parts import Backbone
from mmgen.tensors import All, Batch, Example, Loss, Prediction, Targets

if TYPE_CHECKING:
    from .config import MultipleChoice

CHOICES, MENTIONS, CHOICE = "choices", "choice_mentions", "choice"  # labels of an example
PLACE = "place"  # the label of a row: which of the choices it has
THERE = "there"  # (examples, choices): which choices each example has


class Choices(TargetReader):
    """Makes a row of every choice, in loader workers."""

    makes_rows = True

    def __init__(self, config: MultipleChoice) -> None:
        self.field, self.by_row = config.choice, config.loss == "bce"

    def rows(self, example: Example, draw: random.Random, other: Callable[[], Example]) -> Sequence[Example]:
        choices = example.labels.get(CHOICES) or example.inputs.get(self.field)
        if not choices:
            raise MissingLabel(f"example '{example.id}' has no {CHOICES}", CHOICES)
        if not isinstance(choices, list | tuple) or not all(isinstance(each, str) for each in choices):
            raise DataError(
                f"example '{example.id}' has {CHOICES} that are no list of texts; give all of them, as "
                '["the first", "the second"]'
            )
        right = example.labels.get(CHOICE)
        if right is not None and right not in range(len(choices)):
            raise DataError(
                f"example '{example.id}': choice {right!s:.20} is none of its {len(choices)} choices, which count "
                "from 0"
            )
        mentions = example.labels.get(MENTIONS) or [None] * len(choices)
        if len(mentions) != len(choices):
            raise DataError(
                f"example '{example.id}' has {len(choices)} {CHOICES} and {len(mentions)} {MENTIONS}; give one for each"
            )
        found = []
        for place, (choice, mentioned) in enumerate(zip(choices, mentions, strict=True)):
            inputs = {**example.inputs, self.field: choice}
            if mentioned is not None:
                inputs[f"{self.field}_mentions"] = All(tuple(mentioned))
            found.append(replace(example, inputs=inputs, labels={**example.labels, PLACE: place}))
        return found

    def collate(self, rows: Rows) -> Targets:
        asked = self._asked(rows)
        if unlabelled := [row.id for row in rows.examples if row.labels.get(CHOICE) is None]:
            raise MissingLabel(f"example '{unlabelled[0]}' has no label '{CHOICE}'", CHOICE)
        right = asked[PLACE] == torch.tensor([row.labels[CHOICE] for row in rows.examples])
        count = len(right) if self.by_row else len(asked[THERE])
        return Targets({"loss": count}, {**asked, CHOICE: right.float()})

    def ask(self, rows: Rows) -> Targets:
        return Targets({}, self._asked(rows))

    def _asked(self, rows: Rows) -> dict[str, Tensor]:
        places = torch.tensor([row.labels[PLACE] for row in rows.examples])
        of = _examples(places)
        there = torch.zeros(int(of[-1]) + 1, int(places.max()) + 1, dtype=torch.bool)
        there[of, places] = True
        return {PLACE: places, THERE: there}


class MultipleChoiceObjective(Objective):
    """Owns the head: (B, H) pooled states -> (B, 1) logits."""

    def __init__(self, config: MultipleChoice, backbone: Backbone) -> None:
        super().__init__()
        self.config, self.reader = config, Choices(config)
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(backbone.hidden_size, 1)

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return published_head(weights, self.head)

    def logits(self, model: Sequencer, batch: Batch, asked: Mapping[str, Tensor]) -> Tensor:
        """An example a row, a choice a column; -inf where an example has fewer choices than others."""
        pooled = model.backbone.pooled(model.encode(batch).states)
        logits = self.head(self.dropout(pooled)).float().squeeze(-1)  # (B,)
        table = logits.new_full(asked[THERE].shape, float("-inf"))
        return table.index_put((_examples(asked[PLACE]), asked[PLACE]), logits)

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        places, right = targets.labels[PLACE], targets.labels[CHOICE]
        logits, examples = self.logits(model, batch, targets.labels), _examples(places)
        if self.config.loss == "softmax":
            return Loss({"loss": -(logits.log_softmax(-1)[examples, places] * right).sum()})
        own = logits[examples, places]
        return Loss({"loss": F.binary_cross_entropy_with_logits(own, right, reduction="sum")})

    def predict(self, model: Sequencer, batch: Batch, targets: Targets) -> list[Prediction]:
        logits = self.logits(model, batch, targets.labels)
        shares = logits.softmax(-1) if self.config.loss == "softmax" else logits.sigmoid()
        counts = targets.labels[THERE].sum(1).tolist()
        found = []
        for name, row, count in zip(batch.ids, shares.tolist(), counts, strict=True):
            own = row[:count]
            best = max(range(count), key=own.__getitem__)
            found.append(Prediction(name, {"choice": best, "probabilities": own}, own[best]))
        return found


def _examples(places: Tensor) -> Tensor:
    """(B,) which example each row is of: its rows stand together, the first choice first."""
    return (places == 0).cumsum(0) - 1
