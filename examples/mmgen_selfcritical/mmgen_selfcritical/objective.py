"""The objective: texts are drawn and rewarded, and one packed pass computes the log-probabilities of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property

import torch
from mmgen import Decoding
from mmgen.errors import DataError
from mmgen.examples import Example, Generation
from mmgen.objectives import Objective, Rows, Sequencer, TargetReader
from mmgen.parts import Metric
from mmgen.prompts import prompts_of
from mmgen.tensors import Batch, Loss, Targets, apply
from torch import Tensor

from . import SelfCritical

SEEDS = "seeds"  # label of a row: what its texts are drawn from


class RewardReader(TargetReader):
    """Passes on the examples, which the metric reads, and a seed for each."""

    def collate(self, rows: Rows) -> Targets:
        for example in rows.examples:
            if any(prompts_of(example)):
                raise DataError(f"example '{example.id}' has a prompt; self_critical needs data without prompts")
        seeds = [rows.draw(place).getrandbits(62) for place in range(len(rows.examples))]
        return Targets({"loss": len(seeds)}, {SEEDS: torch.tensor(seeds)}, texts=rows.examples)


class SelfCriticalObjective(Objective):
    """See `SelfCritical`; has no parameters."""

    def __init__(self, config: SelfCritical) -> None:
        super().__init__()
        self.reader, self.config = RewardReader(), config

    @cached_property
    def metric(self) -> Metric:
        return self.config.metric.build()

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        batch = replace(batch, targets={}, seeds=targets.labels[SEEDS])
        with drawing(model):
            drawn = model.generator.generate(
                model, batch, Decoding(do_sample=True, num_return_sequences=self.config.samples)
            )
            greedy = model.generator.generate(model, batch, Decoding())
        rewards, baseline = (self.rewards(texts, targets.texts).to(model.device) for texts in (drawn, greedy))
        log_probabilities = torch.stack([values.sum() for values in token_log_probabilities(model, batch, drawn)])
        advantages = (rewards - baseline).flatten()
        gradient = (advantages * (log_probabilities - log_probabilities.detach())).sum()  # its value is 0
        return Loss({"loss": -(rewards.sum() + gradient) / self.config.samples})

    def rewards(self, texts: Sequence[Sequence[Generation]], examples: Sequence[Example]) -> Tensor:
        """(B, n) the rewards of n texts of each of B examples. Raises DataError."""
        counted = [example for example, row in zip(examples, texts, strict=True) for _ in row]
        scores = self.metric.score([text for row in texts for text in row], counted).per_example
        values = scores.get(self.config.column)
        if values is None:
            known = ", ".join(scores) or "none, for these data"
            raise DataError(
                f"'{self.config.metric.type}' has no column '{self.config.column}' for each text; it has: {known}"
            )
        return torch.tensor([(value or 0.0) / 100 for value in values]).view(len(texts), -1)


@contextmanager
def drawing(model: Sequencer) -> Iterator[None]:
    """Without gradients and dropout."""
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(training)


def token_log_probabilities(
    model: Sequencer, batch: Batch, texts: Sequence[Sequence[Generation]]
) -> tuple[Tensor, ...]:
    """For each text of each example, the log-probabilities (T,) of its tokens as they were drawn: of all tokens that
    may be written. One pass, in which the texts of an example share its prefix."""
    tokens = [[text.tokens for text in row] for row in texts]
    tail = apply(model.generator.reader.lay_out(tokens), lambda tensor: tensor.to(model.device))
    states, target_ids = model.generator.predicting_states(model, batch, tail)
    logits = model.backbone.logits(states).float()[:, : len(model.backbone.tokenizer)]
    logits = logits.index_fill(1, torch.tensor([*model.backbone.forbidden_ids], device=model.device), -torch.inf)
    values = logits.log_softmax(-1).gather(1, target_ids.unsqueeze(1)).squeeze(1)
    return values.split([len(text) for row in tokens for text in row])
