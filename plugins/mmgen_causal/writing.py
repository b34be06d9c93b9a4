"""Writing token by token: the next token's logits for many rows, with keys and values kept where the backbone can."""

from __future__ import annotations

import torch
from torch import Tensor

from mmgen.tensors import WRITTEN, Layout, Slots, apply


class Writing:
    """The state of a search over B inputs with n rows each: a `mmgen.search.Stepper`. The input is encoded once,
    whatever n is."""

    def __init__(self, model, prefix: Slots, begin_id: int) -> None:
        self.model, self.prefix = model, prefix
        self.lengths = prefix.layout.real.sum(1, keepdim=True)  # (B, 1) real slots of the input
        self.begin = torch.full_like(self.lengths, begin_id)
        self.cache = model.backbone.new_cache() if model.backbone.caches else None

    def next_logits(self, written: Tensor) -> Tensor:
        """The tokens so far (B n, t) -> (B n, V)."""
        repeats = len(written) // len(self.lengths)
        written = torch.cat([repeated(self.begin, len(written) // len(self.begin)), written], 1)
        if self.cache is None:
            prefix, lengths = repeated(self.prefix, repeats), repeated(self.lengths, repeats)
            return self._logits(prefix.followed_by(self._slots(written, lengths)))
        if written.shape[1] > 1:
            return self._logits(self._slots(written, self.lengths, last=1))
        logits = self._logits(self.prefix.followed_by(self._slots(written[::repeats], self.lengths)))
        self.cache.repeat(repeats)
        self.lengths = repeated(self.lengths, repeats)
        return repeated(logits, repeats)

    def _slots(self, written: Tensor, lengths: Tensor, last: int = 0) -> Slots:
        """The last slots (all by default) of what is written."""
        time = torch.arange(1, written.shape[1] + 1, device=written.device).expand_as(written)[:, -last:]
        ids = written[:, -last:]
        layout = Layout(torch.full_like(ids, WRITTEN), torch.ones_like(ids), time)
        return self.model.written(ids, lengths + time - 1, layout)

    def _logits(self, slots: Slots) -> Tensor:
        return self.model.backbone.logits(self.model.backbone.encode(slots, self.cache).last[:, -1]).float()

    def reorder_cache(self, rows: Tensor) -> None:
        """Keep these rows. Rows of one input stay together, so the inputs' lengths do not change."""
        if self.cache is not None:
            self.cache.select(rows)


def repeated(value, times: int):
    """Every row of every tensor `times` times in a row."""
    return apply(value, lambda tensor: tensor.repeat_interleave(times, 0))
