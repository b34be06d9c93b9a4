"""Answers (VQA) or choices (VCR) without a head: ranked by how probable the generator writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from mmgen.examples import Prediction, ResolvedExample
from mmgen.objectives import Objective, Rows, Sequencer, TargetReader
from mmgen.tensors import Batch, Loss, Targets, apply

from .answers import UNKNOWN
from .choices import CHOICE, choices_of
from .heads import label_of, label_predictions

TOGETHER = 64  # answers that one row ranks: the cost of its attention grows with their square


class Candidates(TargetReader):
    """Passes on the texts to rank, `known` ones or the choices of an example; in training the right ones."""

    def __init__(self, known: Sequence[str]) -> None:
        self.known = tuple(known)

    def collate(self, rows: Rows) -> Targets:
        texts = [
            example.targets if self.known else (choices_of(example)[label_of(example, CHOICE)],)
            for example in rows.examples
        ]
        return Targets({"loss": len(texts)}, texts=texts)

    def ask(self, rows: Rows) -> Targets:
        return Targets({}, texts=[self.known or tuple(choices_of(example)) for example in rows.examples])


class RankingObjective(Objective):
    """See `RankedChoices` and `RankedAnswers`; has no parameters."""

    def __init__(self, known: Sequence[str] = ()) -> None:
        super().__init__()
        self.reader: Candidates = Candidates(known)

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        batch, _ = self.laid_out(model, batch, targets.texts)
        return model.generator(model, batch, batch.targets["texts"])

    def predict(self, model: Sequencer, batch: Batch, targets: Targets) -> list[Prediction]:
        if known := self.reader.known:
            pieces = [known[first : first + TOGETHER] for first in range(0, len(known), TOGETHER)]
            totals = torch.cat([torch.stack([*self.totals(model, batch, [own] * batch.size)]) for own in pieces], 1)
            totals[:, [answer == UNKNOWN for answer in known]] = -torch.inf
            return label_predictions(batch, totals.softmax(-1), known)
        shares = [row.softmax(0) for row in self.totals(model, batch, targets.texts)]
        return [
            Prediction(id_, {"choice": int(row.argmax()), "probabilities": row.tolist()}, row.max().item())
            for id_, row in zip(batch.ids, shares, strict=True)
        ]

    def totals(self, model: Sequencer, batch: Batch, texts: Sequence[Any]) -> Sequence[Tensor]:
        """The log-probabilities (K,) of the texts of each example."""
        batch, examples = self.laid_out(model, batch, texts)
        values, targets = model.generator.likelihood(model, batch, examples), model.generator.reader.targets
        tokens = values.split([len(text) for example in examples for text in targets(example)])
        return torch.stack([of_text.sum() for of_text in tokens]).split([len(own) for own in texts])

    def laid_out(self, model: Sequencer, batch: Batch, texts: Sequence[Any]) -> tuple[Batch, list[ResolvedExample]]:
        """The batch with the texts of each example behind its inputs, in one row; the examples with these texts."""
        examples = [ResolvedExample(id_, {}, tuple(own)) for id_, own in zip(batch.ids, texts, strict=True)]
        tail = apply(model.generator.reader.collate(Rows(examples)), lambda tensor: tensor.to(model.device))
        return replace(batch, targets={"texts": tail}), examples
