"""The objective of VQA, answers as classes: classifies the state at the [MASK] after a question."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from mmgen_encoders.encoder import head_transform
from torch import Tensor, nn

from mmgen.errors import DataError
from mmgen.examples import Prediction
from mmgen.objectives import Rows, Sequencer, TargetReader
from mmgen.parts import Backbone
from mmgen.tensors import Batch, Loss, Targets

from . import AnswerClasses
from .heads import Head, label_of, label_predictions

ANSWERS = "answers"
UNKNOWN = "<unk>"  # Pythia's first answer, which is never right


class Answers(TargetReader):
    """Computes the weights of all answers in every row, in loader workers."""

    def __init__(self, known: Sequence[str]) -> None:
        self.known = {answer: place for place, answer in enumerate(known)}

    def collate(self, rows: Rows) -> Targets:
        weights = torch.zeros(len(rows.examples), len(self.known))  # (B, A)
        for row, example in zip(weights, rows.examples, strict=True):
            for answer, weight in label_of(example, ANSWERS).items():
                if answer not in self.known:
                    raise DataError(
                        f"example '{example.id}' has the answer '{answer}', which is not among the {len(self.known)} "
                        "answers of the vocabulary"
                    )
                row[self.known[answer]] = weight
        return Targets({"loss": len(weights)}, {ANSWERS: weights})


class AnswerClassesObjective(Head):
    """Owns the head: (B, H) states at the [MASK] -> (B, A) logits, A answers.

    Losses, per example: Kullback-Leibler between the weights, which need not add up to 1, and one
    distribution over all answers (VisualBERT); or binary cross-entropy summed over the answers (VL-BERT).
    """

    def __init__(self, config: AnswerClasses, backbone: Backbone, known: Sequence[str]) -> None:
        transform = head_transform(backbone) if config.transform else nn.Identity()
        super().__init__(config, Answers(known), nn.Linear(backbone.hidden_size, len(known)))
        self.known, self.transform = tuple(known), transform

    def init_from_model(self, model: Sequencer) -> None:
        """Initialise the transform from that of the masked-LM head (VL-BERT's code, for VQA)."""
        if self.config.transform:
            self.transform.load_state_dict(head_transform(model.backbone).state_dict())

    def states(self, model: Sequencer, batch: Batch) -> Tensor:
        states = model.encode(batch).inputs[self.config.question]  # (B, N, H)
        last = batch.inputs[self.config.question]["mask"].sum(1) - 1  # (B,) the [MASK]
        transformed: Tensor = self.transform(states[torch.arange(len(states), device=states.device), last])
        return transformed

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        logits, weights = self.logits(model, batch), targets.labels[ANSWERS]
        if self.config.loss == "kl":
            return Loss({"loss": F.kl_div(logits.log_softmax(-1), weights, reduction="sum")})
        return Loss({"loss": F.binary_cross_entropy_with_logits(logits, weights, reduction="sum")})

    def predict(self, model: Sequencer, batch: Batch, targets: Targets) -> list[Prediction]:
        logits = self.logits(model, batch)
        if UNKNOWN in self.known:
            logits[:, self.known.index(UNKNOWN)] = float("-inf")
        shares = logits.softmax(-1) if self.config.loss == "kl" else logits.sigmoid()
        return label_predictions(batch, shares, self.known)
