"""The objective of VQA, answers as classes: classifies the state at the [MASK] after a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from mmgen_encoders.encoder import head_transform
from mmgen_vision.heads import published_head
from torch import Tensor, nn

from mmgen.errors import DataError, MissingLabel
from mmgen.examples import Prediction
from mmgen.objectives import Objective, Rows, Sequencer, TargetReader
from mmgen.parts import Backbone
from mmgen.tensors import Batch, Loss, Targets

from .vocabulary import UNKNOWN

if TYPE_CHECKING:
    from .config import AnswerClasses

ANSWERS = "answers"


class Answers(TargetReader):
    """Computes the weights of all answers in every row, in loader workers."""

    def __init__(self, known: Sequence[str]) -> None:
        self.known = {answer: place for place, answer in enumerate(known)}

    def collate(self, rows: Rows) -> Targets:
        weights = torch.zeros(len(rows.examples), len(self.known))  # (B, A)
        for row, example in zip(weights, rows.examples, strict=True):
            if ANSWERS not in example.labels:
                raise MissingLabel(f"example '{example.id}' has no label '{ANSWERS}'", ANSWERS)
            for answer, weight in example.labels[ANSWERS].items():
                if answer not in self.known:
                    raise DataError(
                        f"example '{example.id}' has the answer '{answer}', which is not among the {len(self.known)} "
                        "answers of the vocabulary"
                    )
                row[self.known[answer]] = weight
        return Targets({"loss": len(weights)}, {ANSWERS: weights})


class AnswerClassesObjective(Objective):
    """Owns the head: (B, H) states at the [MASK] -> (B, A) logits, A answers.

    Losses, per example: Kullback-Leibler between the weights, which need not add up to 1, and one
    distribution over all answers (VisualBERT); or binary cross-entropy summed over the answers (VL-BERT).
    """

    reader: Answers

    def __init__(self, config: AnswerClasses, backbone: Backbone, known: Sequence[str]) -> None:
        super().__init__()
        self.config, self.known, self.reader = config, known, Answers(known)
        self.transform = head_transform(backbone) if config.transform else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(backbone.hidden_size, len(known))

    def init_from_model(self, model: Sequencer) -> None:
        """Initialise the transform from that of the masked-LM head (VL-BERT's code, for VQA)."""
        if self.config.transform:
            self.transform.load_state_dict(head_transform(model.backbone).state_dict())

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return published_head(weights, self.head)

    def logits(self, model: Sequencer, batch: Batch) -> Tensor:
        states = model.encode(batch).inputs[self.config.question]  # (B, N, H)
        last = batch.inputs[self.config.question]["mask"].sum(1) - 1  # (B,) the [MASK]
        answer_states = states[torch.arange(len(states), device=states.device), last]
        logits: Tensor = self.head(self.dropout(self.transform(answer_states)))
        return logits.float()

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        logits, weights = self.logits(model, batch), targets.labels[ANSWERS]
        if self.config.loss == "kl":
            return Loss({"loss": F.kl_div(logits.log_softmax(-1), weights, reduction="sum")})
        return Loss({"loss": F.binary_cross_entropy_with_logits(logits, weights, reduction="sum")})

    def predict(self, model: Sequencer, batch: Batch, targets: Targets) -> list[Prediction]:
        logits = self.logits(model, batch)
        if UNKNOWN in self.reader.known:
            logits[:, self.reader.known[UNKNOWN]] = float("-inf")
        shares = logits.softmax(-1) if self.config.loss == "kl" else logits.sigmoid()
        best = shares.topk(min(self.config.top_k, len(self.known)))
        predictions = []
        for name, values, places in zip(batch.ids, best.values.tolist(), best.indices.tolist(), strict=True):
            probabilities = {self.known[place]: value for place, value in zip(places, values, strict=True)}
            predictions.append(
                Prediction(name, {"label": self.known[places[0]], "probabilities": probabilities}, values[0])
            )
        return predictions
