"""The fake generator `greedy`, which reads everything again for every token; a short example of the contract."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..configs import GeneratorConfig
from ..decoding import Decoding
from ..examples import Generation
from ..objectives import Generator, Sequencer, TextTargets
from ..parts import Backbone
from ..search import as_generations, search
from ..sequence import Prefix
from ..tensors import PAD, WRITTEN, Batch, Layout, Loss, Tail, Targets


class Greedy(GeneratorConfig):
    """Writes from left to right: the likeliest next token every time, or by beams or samples."""

    type: Literal["greedy"] = "greedy"
    max_tokens: int = Field(12, ge=2, description="tokens of a text, its end included")

    def build(self, backbone: Backbone) -> GreedyGenerator:
        return GreedyGenerator(self, backbone)


class NextTokens(TextTargets):
    """A target y_1..y_T is laid out as [SEP], y_1..y_(T-1), and each slot predicts the next token."""

    def lay_out(self, targets: Sequence[Sequence[Sequence[int]]]) -> Tail:
        rows = [
            [
                (token, t, WRITTEN, group, t + 1, label)
                for group, y in enumerate(texts, 1)
                for t, (token, label) in enumerate(zip([self.end_id, *y], y, strict=False))
            ]
            for texts in targets
        ]
        table = pad_sequence([torch.tensor(row) for row in rows], batch_first=True)  # (B, S, 6), role 0 is PAD
        ids, offsets, role, group, time, labels = table.unbind(-1)
        labels = labels.masked_fill(role == PAD, -100)
        return Tail(ids, offsets, Layout(role, group, time), labels)


class GreedyGenerator(Generator):
    """Trains and writes; has no parameters besides the backbone's."""

    reader: NextTokens

    def __init__(self, config: Greedy, backbone: Backbone) -> None:
        super().__init__()
        self.reader = NextTokens(backbone, config.max_tokens)

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        assert targets.tail is not None  # its reader lays one out
        logits = tail_logits(model, model.prefix(batch), targets.tail).flatten(0, 1)
        return Loss({"loss": F.cross_entropy(logits, targets.tail.labels.flatten(), reduction="sum")})

    def generate(self, model: Sequencer, batch: Batch, options: Decoding) -> list[list[Generation]]:
        prefix = model.prefix(batch)
        start = torch.full_like(prefix.free, model.backbone.end_id)
        stepper = Rereader(model, prefix, self.reader)
        results = search(stepper, start, options, model.backbone, self.max_tokens)
        return as_generations(results, batch.ids, model.backbone)


class Rereader:
    """The stepper of a search, without a cache."""

    def __init__(self, model: Sequencer, prefix: Prefix, reader: NextTokens) -> None:
        self.model, self.prefix, self.reader = model, prefix, reader

    def next_logits(self, written: Tensor) -> Tensor:
        prefix = self.prefix.repeat(len(written) // len(self.prefix))
        tail = self.reader.lay_out([[[*tokens, 0]] for tokens in written.tolist()])
        return tail_logits(self.model, prefix, tail)[:, -1]

    def reorder_cache(self, rows: Tensor) -> None:
        return


def tail_logits(model: Sequencer, prefix: Prefix, tail: Tail) -> Tensor:
    """(B, S, V) of a tail's slots."""
    states = model.backbone.encode(prefix.slots.followed_by(model.behind(prefix, tail))).last
    return model.backbone.logits(states[:, prefix.slots.positions.shape[1] :]).float()
