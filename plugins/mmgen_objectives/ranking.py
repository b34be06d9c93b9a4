"""The objective of VQA and VCR without a head: answers or choices are ranked by how probable the generator writes
them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from mmgen.examples import Example, Prediction
from mmgen.objectives import Objective, Rows, Sequencer, TargetReader
from mmgen.tensors import Batch, Loss, Targets, apply

from .answers import ANSWERS, Answers
from .choices import CHOICE, CHOICES
from .heads import label_of, label_predictions

NEVER = -1e9  # the log-probability of a choice that an example does not have


class Choices(TargetReader):
    """Passes on the choices of an example, and which of them is right."""

    def collate(self, rows: Rows) -> Targets:
        right = torch.tensor([label_of(example, CHOICE) for example in rows.examples])
        return replace(self.ask(rows), counts={"loss": len(right)}, labels={CHOICE: right})

    def ask(self, rows: Rows) -> Targets:
        return Targets({}, texts=[tuple(label_of(example, CHOICES)) for example in rows.examples])


class Ranking(Objective):
    """See `RankedChoices`; has no parameters."""

    def __init__(self, reader: TargetReader) -> None:
        super().__init__()
        self.reader = reader

    def log_probabilities(self, model: Sequencer, batch: Batch, texts: Sequence[Sequence[str]]) -> Tensor:
        """(B, C) of the C texts of each example, from one pass in which they share its prefix."""
        examples = [Example(id_, {}, tuple(row)) for id_, row in zip(batch.ids, texts, strict=True)]
        reader = model.generator.reader
        targets = apply(reader.collate(Rows(examples)), lambda tensor: tensor.to(model.device))
        values = model.generator.likelihood(model, replace(batch, targets={"texts": targets}), examples)
        lengths = [len(tokens) for example in examples for tokens in reader.targets(example)]
        totals = torch.stack([tokens.sum() for tokens in values.split(lengths)])
        return pad_sequence(totals.split([*map(len, texts)]), True, NEVER)

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        scores = self.log_probabilities(model, batch, targets.texts)
        import os
        if os.environ.get("RANK") == "softmax":
            scores = scores.log_softmax(-1)
        return Loss({"loss": -scores.gather(1, targets.labels[CHOICE].unsqueeze(1)).sum()})

    def predict(self, model: Sequencer, batch: Batch, targets: Targets) -> list[Prediction]:
        shares = self.log_probabilities(model, batch, targets.texts).softmax(-1)
        predictions = []
        for name, row, texts in zip(batch.ids, shares.tolist(), targets.texts, strict=True):
            best = max(range(len(texts)), key=row.__getitem__)
            predictions.append(Prediction(name, {"choice": best, "probabilities": row[: len(texts)]}, row[best]))
        return predictions


class AnswerRanking(Ranking):
    """See `RankedAnswers`."""

    def __init__(self, known: Sequence[str]) -> None:
        super().__init__(Answers(known))
        self.known = tuple(known)

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        scores = self.log_probabilities(model, batch, [self.known] * len(batch.ids))
        return Loss({"loss": -(scores * targets.labels[ANSWERS]).sum()})

    def predict(self, model: Sequencer, batch: Batch, targets: Targets) -> list[Prediction]:
        shares = self.log_probabilities(model, batch, [self.known] * len(batch.ids)).softmax(-1)
        return label_predictions(batch, shares, self.known)
