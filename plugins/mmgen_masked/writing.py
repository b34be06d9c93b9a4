"""Writing step by step: the logits of the next token of many rows, with keys and values kept where the backbone can.

A step feeds two slots, the token just written and a [MASK] in the next place, and forgets the [MASK]'s.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mmgen.tensors import MASK, WRITTEN, Layout, Slots, apply


class Writing:
    """The state of a search over B inputs with n rows each; X is encoded once an input, whatever n is.

    `reorder_cache` is the name under which transformers' searches ask for the rows they keep.
    """

    def __init__(self, model, prefix: Slots) -> None:
        self.model, self.prefix = model, prefix
        self.lengths = prefix.layout.real.sum(1, keepdim=True)  # (B, 1) real slots of X
        self.cache = model.backbone.new_cache() if model.backbone.caches else None

    def next_logits(self, written: Tensor) -> Tensor:
        """written (B n, t), the tokens so far -> (B n, V)."""
        repeats = written.shape[0] // len(self.lengths)
        if self.cache is None:
            logits = self._logits(self._repeated(self.prefix, repeats).followed_by(self._slots(written, self._repeated(self.lengths, repeats))))
        elif written.shape[1] == 0:
            logits = self._logits(self.prefix.followed_by(self._slots(written[::repeats], self.lengths)))
            logits = logits.repeat_interleave(repeats, 0)
            self.cache.repeat(repeats)
            self.lengths = self._repeated(self.lengths, repeats)
        else:
            logits = self._logits(self._slots(written, self.lengths, last=2))
        return logits

    def _slots(self, written: Tensor, lengths: Tensor, last: int = 0) -> Slots:
        """The last slots (all by default) of written tokens and the [MASK] after them."""
        rows, t = written.shape
        ids = torch.cat([written, written.new_full((rows, 1), self.model.backbone.mask_id)], 1)[:, -last:]
        time = torch.arange(1, t + 2, device=ids.device)[-last:].expand(rows, -1)
        role = torch.full_like(ids, WRITTEN)
        role[:, -1] = MASK
        return self.model.written(ids, lengths + time - 1, Layout(role, torch.ones_like(ids), time))

    def _logits(self, slots: Slots) -> Tensor:
        last = self.model.backbone.encode(slots, self.cache).last[:, -1]
        if self.cache is not None:
            self.cache.forget(1)
        logits = self.model.backbone.logits(last).float()
        known = len(self.model.backbone.tokenizer)  # checkpoints pad their embeddings beyond the words there are
        return logits if logits.shape[-1] == known else logits[:, :known]

    @staticmethod
    def _repeated(value, times: int):
        return apply(value, lambda tensor: tensor.repeat_interleave(times, 0))

    def reorder_cache(self, rows: Tensor) -> None:
        """Keep these rows. Rows of one input stay together, so X's own lengths do not change."""
        if self.cache is not None:
            self.cache.select(rows)

    def get_seq_length(self) -> int:
        return 0 if self.cache is None else len(self.cache)
