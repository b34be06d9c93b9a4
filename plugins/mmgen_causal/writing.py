"""Token-by-token decoding: next-token logits of many rows, with cached keys and values if the backbone has a cache."""

from __future__ import annotations

import torch
from torch import Tensor

from mmgen.objectives import Sequencer
from mmgen.sequence import Prefix
from mmgen.tensors import WRITTEN, Layout, Slots


class CausalStepper:
    """The state of a search over B inputs with n rows each: a `mmgen.search.Stepper`. An input is encoded once,
    regardless of n."""

    def __init__(self, model: Sequencer, prefix: Prefix, begin_id: int) -> None:
        self.model, self.prefix = model, prefix
        self.begin = torch.full_like(prefix.free, begin_id)
        self.cache = model.backbone.new_cache() if model.backbone.caches else None

    def next_logits(self, written: Tensor) -> Tensor:
        """Next-token logits (B n, V) after the tokens `written` (B n, t)."""
        begin = self.begin.repeat_interleave(len(written) // len(self.begin), 0)
        repeats, written = len(written) // len(self.prefix), torch.cat([begin, written], 1)
        if self.cache is None:
            prefix = self.prefix.repeat(repeats)
            return self._logits(prefix.slots.followed_by(self._slots(prefix, written)))
        if written.shape[1] > 1:
            return self._logits(self._slots(self.prefix, written, last=1))
        logits = self._logits(self.prefix.slots.followed_by(self._slots(self.prefix, written[::repeats])))
        self.cache.repeat(repeats)
        self.prefix = self.prefix.repeat(repeats)
        return logits.repeat_interleave(repeats, 0)

    def _slots(self, prefix: Prefix, written: Tensor, last: int = 0) -> Slots:
        """Slots of the `last` tokens written; by default of all tokens."""
        time = torch.arange(1, written.shape[1] + 1, device=written.device).expand_as(written)[:, -last:]
        ids = written[:, -last:]
        layout = Layout(torch.full_like(ids, WRITTEN), torch.ones_like(ids), time)
        return self.model.written(prefix, ids, time - 1, layout)

    def _logits(self, slots: Slots) -> Tensor:
        return self.model.backbone.logits(self.model.backbone.encode(slots, self.cache).last[:, -1]).float()

    def reorder_cache(self, rows: Tensor) -> None:
        """Continue from these rows. Rows of one input stay together, so the cached inputs do not change."""
        if self.cache is not None:
            self.cache.select(rows)
