"""Answers (VQA) or choices (VCR) without a head: ranked by how probable the generator writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from mmgen.evaluation.likelihood import likelihoods
from mmgen.examples import Prediction, ResolvedExample
from mmgen.objectives import Objective, Rows, Sequencer, TargetReader
from mmgen.tensors import Batch, Loss, Targets, apply

from .choices import CHOICE, CHOICES
from .heads import label_of, label_predictions


class Candidates(TargetReader):
    """Passes on the texts to rank, `known` ones or the choices of an example; in training the right ones."""

    def __init__(self, known: Sequence[str]) -> None:
        self.known = tuple(known)

    def collate(self, rows: Rows) -> Targets:
        texts = [
            example.targets if self.known else (label_of(example, CHOICES)[label_of(example, CHOICE)],)
            for example in rows.examples
        ]
        return Targets({"loss": len(texts)}, texts=texts)

    def ask(self, rows: Rows) -> Targets:
        return Targets({}, texts=[self.known or tuple(label_of(example, CHOICES)) for example in rows.examples])


class RankingObjective(Objective):
    """See `RankedChoices` and `RankedAnswers`; has no parameters."""

    def __init__(self, known: Sequence[str] = ()) -> None:
        super().__init__()
        self.reader: Candidates = Candidates(known)

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        batch, _ = self.laid_out(model, batch, targets)
        return model.generator(model, batch, batch.targets["texts"])

    def predict(self, model: Sequencer, batch: Batch, targets: Targets) -> list[Prediction]:
        batch, examples = self.laid_out(model, batch, targets)
        rows = likelihoods(model, batch, examples)
        shares = [torch.tensor([text.log_probability for text in row]).softmax(0) for row in rows]
        if self.reader.known:
            return label_predictions(batch, torch.stack(shares), self.reader.known)
        return [
            Prediction(id_, {"choice": int(row.argmax()), "probabilities": row.tolist()}, row.max().item())
            for id_, row in zip(batch.ids, shares, strict=True)
        ]

    def laid_out(self, model: Sequencer, batch: Batch, targets: Targets) -> tuple[Batch, list[ResolvedExample]]:
        """The batch with the texts of each example behind its inputs, in one row; the examples with these texts."""
        examples = [ResolvedExample(id_, {}, tuple(texts)) for id_, texts in zip(batch.ids, targets.texts, strict=True)]
        tail = apply(model.generator.reader.collate(Rows(examples)), lambda tensor: tensor.to(model.device))
        return replace(batch, targets={"texts": tail}), examples
