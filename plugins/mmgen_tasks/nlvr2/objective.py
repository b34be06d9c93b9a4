"""The objective of NLVR2: classifies the pooled state of a row by whether its statement is true of its pictures."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from mmgen_vision.heads import published_head
from mmgen_vision.truths import LABELS
from torch import Tensor, nn

from mmgen.errors import MissingLabel
from mmgen.examples import Example, Prediction, ResolvedExample
from mmgen.objectives import Objective, Rows, Sequencer, TargetReader
from mmgen.parts import Backbone
from mmgen.tensors import Batch, Loss, Targets

from .two_rows import joined, pair_head, row_per_picture

if TYPE_CHECKING:
    from .config import TrueOrFalse

TRUTH = "truth"


class Truths(TargetReader):
    """The label of every example, in loader workers: 1 for a true statement."""

    def collate(self, rows: Rows) -> Targets:
        return self.truths(rows.examples)

    def truths(self, examples: Sequence[ResolvedExample]) -> Targets:
        if unlabelled := [row.id for row in examples if TRUTH not in row.labels]:
            raise MissingLabel(f"example '{unlabelled[0]}' has no label '{TRUTH}'", TRUTH)
        truths = torch.tensor([int(row.labels[TRUTH]) for row in examples])
        return Targets({"loss": len(truths)}, {TRUTH: truths})


class TruthsOfRows(Truths):
    """The same for two rows per example, one for each of its two pictures."""

    def __init__(self, pictures: str) -> None:
        self.pictures = pictures

    def rows(self, example: Example, draw: random.Random, draw_other: Callable[[], Example]) -> Sequence[Example]:
        return row_per_picture(example, self.pictures)

    def collate(self, rows: Rows) -> Targets:
        return self.truths(rows.examples[::2])


class TrueOrFalseObjective(Objective):
    """Owns the head: (B, H) pooled states -> (B, 2) logits of false and true; of two rows per example, (2B, H) ->
    (B, 2)."""

    def __init__(self, config: TrueOrFalse, backbone: Backbone) -> None:
        super().__init__()
        self.by_row = config.arrangement == "rows"
        self.reader = TruthsOfRows(config.pictures) if self.by_row else Truths()
        self.dropout = nn.Dropout(config.dropout)
        self.head = pair_head(backbone.hidden_size, 2) if self.by_row else nn.Linear(backbone.hidden_size, 2)

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return published_head(weights, self.head) if isinstance(self.head, nn.Linear) else {}

    def logits(self, model: Sequencer, batch: Batch) -> Tensor:
        pooled = model.backbone.pooled(model.encode(batch).states)
        return self.head(self.dropout(joined(pooled) if self.by_row else pooled)).float()

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        return Loss({"loss": F.cross_entropy(self.logits(model, batch), targets.labels[TRUTH], reduction="sum")})

    def predict(self, model: Sequencer, batch: Batch, targets: Targets) -> list[Prediction]:
        shares = self.logits(model, batch).softmax(-1).tolist()
        return [
            Prediction(
                name,
                {"label": LABELS[true > false], "probabilities": dict(zip(LABELS, (false, true), strict=True))},
                max(false, true),
            )
            for name, (false, true) in zip(batch.ids, shares, strict=True)
        ]
