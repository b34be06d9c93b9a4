"""Answers (VQA) or choices (VCR) without a head: ranked by how probable the generator writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from mmgen.examples import Example, Prediction
from mmgen.objectives import Objective, Rows, Sequencer, TargetReader
from mmgen.tensors import Batch, Loss, Targets, apply

from .answers import ANSWERS
from .choices import CHOICE, CHOICES
from .heads import label_of, label_predictions


class Candidates(TargetReader):
    """Passes on the texts to rank, `known` ones or the choices of an example; in training the right ones."""

    def __init__(self, known: Sequence[str]) -> None:
        self.known = tuple(known)

    def collate(self, rows: Rows) -> Targets:
        return Targets({"loss": len(rows.examples)}, texts=[self.weights(example) for example in rows.examples])

    def weights(self, example: Example) -> Mapping[str, float]:
        """Text -> how right it is."""
        if self.known:
            return dict(label_of(example, ANSWERS))
        return {label_of(example, CHOICES)[label_of(example, CHOICE)]: 1.0}

    def ask(self, rows: Rows) -> Targets:
        return Targets({}, texts=[self.known or tuple(label_of(example, CHOICES)) for example in rows.examples])


class RankingObjective(Objective):
    """See `RankedChoices` and `RankedAnswers`; has no parameters."""

    def __init__(self, known: Sequence[str] = ()) -> None:
        super().__init__()
        self.reader: Candidates = Candidates(known)

    def log_probabilities(self, model: Sequencer, batch: Batch, targets: Targets) -> list[Tensor]:
        """(C,) for each example, of its C texts: one pass, in which they share the example's prefix."""
        reader, rows = model.generator.reader, zip(batch.ids, targets.texts, strict=True)
        examples = [Example(id_, {}, tuple(texts)) for id_, texts in rows]
        laid_out = apply(reader.collate(Rows(examples)), lambda tensor: tensor.to(model.device))
        values = model.generator.likelihood(model, replace(batch, targets={"texts": laid_out}), examples)
        lengths = [len(tokens) for example in examples for tokens in reader.targets(example)]
        totals = torch.stack([tokens.sum() for tokens in values.split(lengths)])
        return list(totals.split([len(example.targets) for example in examples]))

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        weights = torch.tensor([weight for texts in targets.texts for weight in texts.values()], device=model.device)
        return Loss({"loss": -(torch.cat(self.log_probabilities(model, batch, targets)) * weights).sum()})

    def predict(self, model: Sequencer, batch: Batch, targets: Targets) -> list[Prediction]:
        shares = [values.softmax(0) for values in self.log_probabilities(model, batch, targets)]
        if self.reader.known:
            return label_predictions(batch, torch.stack(shares), self.reader.known)
        return [
            Prediction(id_, {"choice": int(row.argmax()), "probabilities": row.tolist()}, float(row.max()))
            for id_, row in zip(batch.ids, shares, strict=True)
        ]
