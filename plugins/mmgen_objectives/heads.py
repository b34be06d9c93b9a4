"""The base of objectives with a head: dropout and a linear layer over states; predictions of labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch.nn.functional as F
from mmgen_vision.heads import published_head
from torch import Tensor, nn

from mmgen.errors import DataError
from mmgen.examples import Example, Prediction
from mmgen.objectives import Objective, Sequencer, TargetReader
from mmgen.tensors import Batch, Loss, Targets

LISTED = 10  # labels of a prediction with their probabilities, at most
CLASSES = "classes"  # label of `Targets`: (B,) the right class of every example


def label_of(example: Example, name: str) -> Any:
    """The label of an example. Raises DataError."""
    if (label := example.labels.get(name)) is None:
        raise DataError(f"example '{example.id}' has no label '{name}'")
    return label


class Head(Objective):
    """A head, mostly a linear layer, from states (B, H) to logits (B, C), with the dropout of its config."""

    def __init__(self, config: Any, reader: TargetReader, head: nn.Module) -> None:
        super().__init__()
        self.config, self.reader, self.head = config, reader, head
        self.dropout = nn.Dropout(config.dropout)

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The published head of a task with as many outputs."""
        return published_head(weights, self.head) if isinstance(self.head, nn.Linear) else {}

    def states(self, model: Sequencer, batch: Batch) -> Tensor:
        """(B, H) the states that the head reads; by default the pooled ones."""
        return model.backbone.pooled(model.encode(batch).states)

    def logits(self, model: Sequencer, batch: Batch) -> Tensor:
        """(B, C) float32."""
        logits: Tensor = self.head(self.dropout(self.states(model, batch)))
        return logits.float()

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        return Loss({"loss": F.cross_entropy(self.logits(model, batch), targets.labels[CLASSES], reduction="sum")})


def label_predictions(batch: Batch, shares: Tensor, labels: Any) -> list[Prediction]:
    """Predictions of labels from the probabilities (B, N) of `labels`, with those of the likeliest."""
    best = shares.topk(min(LISTED, len(labels)))
    predictions = []
    for name, values, places in zip(batch.ids, best.values.tolist(), best.indices.tolist(), strict=True):
        probabilities = {labels[place]: value for place, value in zip(places, values, strict=True)}
        predictions.append(Prediction(name, {"label": labels[places[0]], "probabilities": probabilities}, values[0]))
    return predictions
