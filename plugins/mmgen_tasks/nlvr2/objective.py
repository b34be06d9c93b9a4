"""True or false: classifies the pooled state of a row by whether its statement is true of its pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from mmgen_vl.heads import published_head
from torch import Tensor, nn

from mmgen.errors import MissingLabel
from mmgen.objectives import Objective, Rows, Sequencer, TargetReader
from mmgen.parts import Backbone
from mmgen.tensors import Batch, Loss, Prediction, Targets

if TYPE_CHECKING:
    from .config import TrueOrFalse

TRUTH = "truth"


class Truths(TargetReader):
    """The label of every row, in loader workers: 1 for a true statement."""

    def collate(self, rows: Rows) -> Targets:
        if unlabelled := [row.id for row in rows.examples if TRUTH not in row.labels]:
            raise MissingLabel(f"example '{unlabelled[0]}' has no label '{TRUTH}'", TRUTH)
        truths = torch.tensor([int(row.labels[TRUTH]) for row in rows.examples])
        return Targets({"loss": len(truths)}, {TRUTH: truths})


class TrueOrFalseObjective(Objective):
    """Owns the head: (B, H) pooled states -> (B, 2) logits of false and true."""

    def __init__(self, config: TrueOrFalse, backbone: Backbone) -> None:
        super().__init__()
        self.reader = Truths()
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(backbone.hidden_size, 2)

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return published_head(weights, self.head)

    def logits(self, model: Sequencer, batch: Batch) -> Tensor:
        return self.head(self.dropout(model.backbone.pooled(model.encode(batch).states))).float()

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        return Loss({"loss": F.cross_entropy(self.logits(model, batch), targets.labels[TRUTH], reduction="sum")})

    def predict(self, model: Sequencer, batch: Batch, targets: Targets) -> list[Prediction]:
        shares = self.logits(model, batch).softmax(-1).tolist()
        return [
            Prediction(
                name, {"label": str(true > false), "probabilities": {"False": false, "True": true}}, max(false, true)
            )
            for name, (false, true) in zip(batch.ids, shares, strict=True)
        ]
