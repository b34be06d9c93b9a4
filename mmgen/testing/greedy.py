"""The fake generator `greedy` writes the likeliest next token every time; a short example of the contract."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from ..configs import GeneratorConfig
from ..decoding import Decoding
from ..errors import UnavailableError
from ..examples import Generation
from ..objectives import Generator, Sequencer, TextTargets
from ..parts import Backbone
from ..sequence import Prefix
from ..tensors import PAD, WRITTEN, Batch, Layout, Loss, Tail, Targets


class Greedy(GeneratorConfig):
    """Writes the likeliest next token every time; refuses beams, sampling and every other option."""

    type: Literal["greedy"] = "greedy"
    max_tokens: int = Field(12, ge=2, description="tokens of a text, its end included")

    def build(self, backbone: Backbone) -> GreedyGenerator:
        return GreedyGenerator(self, backbone)

    def refuses(self, decoding: Decoding) -> dict[str, str]:
        default = Decoding()
        changed = [name for name, value in decoding if value != getattr(default, name)]
        return dict.fromkeys(changed, "the generator 'greedy' always takes the likeliest token; leave the option out")


class NextTokens(TextTargets):
    """A target y_1..y_T is laid out as [SEP], y_1..y_(T-1), and each slot predicts the next token."""

    def __init__(self, config: Greedy, backbone: Backbone) -> None:
        super().__init__(backbone, config.max_tokens)
        self.pad_id = backbone.pad_id

    def lay_out(self, targets: Sequence[Sequence[Sequence[int]]]) -> Tail:
        rows = []  # of (id, offset, role, group, time, label)
        for texts in targets:
            rows.append(
                [
                    (token, t - 1, WRITTEN, group, t, label)
                    for group, y in enumerate(texts, 1)
                    for t, (token, label) in enumerate(zip([self.end_id, *y[:-1]], y, strict=True), 1)
                ]
            )
        longest, padding = max(map(len, rows)), (self.pad_id, 0, PAD, 0, 0, -100)
        table = torch.tensor([row + [padding] * (longest - len(row)) for row in rows])  # (B, S, 6)
        ids, offsets, role, group, time, labels = table.unbind(-1)
        return Tail(ids, offsets, Layout(role, group, time), labels)


class GreedyGenerator(Generator):
    """Trains and writes; has no parameters besides the backbone's."""

    def __init__(self, config: Greedy, backbone: Backbone) -> None:
        super().__init__()
        self.reader = NextTokens(config, backbone)

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        assert targets.tail is not None  # its reader lays one out
        predicted = targets.tail.labels != -100
        logits = self._logits(model, model.prefix(batch), targets.tail)[predicted]
        return Loss({"loss": F.cross_entropy(logits, targets.tail.labels[predicted], reduction="sum")})

    def generate(self, model: Sequencer, batch: Batch, options: Decoding) -> list[list[Generation]]:
        if refused := Greedy().refuses(options):
            raise UnavailableError(
                f"the generator 'greedy' does not support {', '.join(refused)}; leave the options out"
            )
        prefix = model.prefix(batch)
        texts = []
        for row, id_ in enumerate(batch.ids):
            tokens, total = self._write_row(model, prefix.select(torch.tensor([row], device=prefix.free.device)))
            texts.append([Generation(id_, model.backbone.decode_text(tokens), tuple(tokens), total / len(tokens))])
        return texts

    def _write_row(self, model: Sequencer, prefix: Prefix) -> tuple[list[int], float]:
        """One row's tokens and their log-probability."""
        tokens: list[int] = []
        total = 0.0
        while len(tokens) < self.max_tokens and self.reader.end_id not in tokens:
            tail = self.reader.lay_out([[[*tokens, self.reader.end_id]]])
            logp = self._logits(model, prefix, tail)[0, -1].log_softmax(-1)
            logp[[*model.backbone.forbidden_ids]] = -torch.inf
            best = logp.max(-1)
            tokens.append(int(best.indices))
            total += float(best.values)
        return tokens, total

    def _logits(self, model: Sequencer, prefix: Prefix, tail: Tail) -> Tensor:
        """(B, S, V) of a tail's slots."""
        states = model.backbone.encode(prefix.slots.followed_by(model.behind(prefix, tail))).last
        return model.backbone.logits(states[:, prefix.slots.positions.shape[1] :]).float()
