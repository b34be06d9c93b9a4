"""The objective: texts are drawn and rewarded, and one packed pass computes the log-probabilities of all of them."""

from __future__ import annotations

from collections.abc import Sequence
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


class RewardReader(TargetReader):
    """Passes on the examples, which the metric reads, and a seed for each."""

    def collate(self, rows: Rows) -> Targets:
        for example in rows.examples:
            if any(prompts_of(example)):
                raise DataError(f"example '{example.id}' has a prompt; self_critical needs data without prompts")
        seeds = [rows.draw(place).getrandbits(62) for place in range(len(rows.examples))]
        return Targets({"loss": len(seeds)}, {"seeds": torch.tensor(seeds)}, texts=rows.examples)


class SelfCriticalObjective(Objective):
    """See `SelfCritical`; has no parameters."""

    def __init__(self, config: SelfCritical) -> None:
        super().__init__()
        self.reader, self.config = RewardReader(), config

    @cached_property
    def metric(self) -> Metric:
        return self.config.metric.build()

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        batch, n, training = (
            replace(batch, targets={}, seeds=targets.labels["seeds"]),
            self.config.samples,
            model.training,
        )
        model.eval()  # texts are drawn without dropout
        with torch.no_grad():
            drawn = model.generator.generate(model, batch, Decoding(do_sample=True, num_return_sequences=n))
            greedy = model.generator.generate(model, batch, Decoding())
        model.train(training)
        rewards, baseline = (self.rewards(texts, targets.texts).to(model.device) for texts in (drawn, greedy))
        log_probabilities = torch.stack([tokens.sum() for tokens in packed_pass(model, batch, drawn)]).view(-1, n)
        # its value is 0, and its gradient is REINFORCE's
        gradient = ((rewards - baseline) * (log_probabilities - log_probabilities.detach())).sum()
        return Loss({"loss": -(rewards.sum() + gradient) / n})

    def rewards(self, texts: Sequence[Sequence[Generation]], examples: Sequence[Example]) -> Tensor:
        """(B, n) the rewards of n texts of each of B examples. Raises DataError."""
        column, counted = self.config.column, [e for e, row in zip(examples, texts, strict=True) for _ in row]
        scores = self.metric.score([text for row in texts for text in row], counted).per_example
        if column not in scores:
            known = ", ".join(scores) or "none, for these data"
            raise DataError(f"'{self.config.metric.type}' has no column '{column}' for each text; it has: {known}")
        return torch.tensor([(score or 0.0) / 100 for score in scores[column]]).view(len(texts), -1)


def packed_pass(model: Sequencer, batch: Batch, texts: Sequence[Sequence[Generation]]) -> tuple[Tensor, ...]:
    """For each text of each example, the log-probabilities (T,) of its tokens among all that may be written. The texts
    of an example share its prefix."""
    tokens = [[text.tokens for text in row] for row in texts]
    tail = apply(model.generator.reader.lay_out(tokens), lambda tensor: tensor.to(model.device))
    states, target_ids = model.generator.predicting_states(model, batch, tail)
    logits = model.backbone.logits(states).float()[:, : len(model.backbone.tokenizer)]
    logits[:, [*model.backbone.forbidden_ids]] = -torch.inf
    values = logits.log_softmax(-1).gather(1, target_ids.unsqueeze(1)).squeeze(1)
    return values.split([len(text) for row in tokens for text in row])
