"""Writing step by step: the logits of the next token of many rows, with keys and values kept where the backbone can.

The n rows of an input are written as the n targets of one packed row, as they are learnt: X and its keys and values are
there once, whatever n is. A step feeds two slots for each of them, the token just written and a [MASK] in the next
place, and forgets the [MASK]s. What has been written stands step by step behind X, one slot of each target in turn.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mmgen.objectives import Sequencer
from mmgen.sequence import Prefix
from mmgen.tensors import MASK, WRITTEN, Layout, Slots


class Writing:
    """The state of a search over B inputs with n rows each: a `mmgen.search.Stepper`."""

    def __init__(self, model: Sequencer, prefix: Prefix) -> None:
        self.model, self.prefix = model, prefix  # of the inputs that are still written for
        self.cache = model.backbone.new_cache() if model.backbone.caches else None
        self.left = torch.zeros_like(prefix.free.squeeze(1), dtype=torch.bool)  # (B,) inputs that are done
        self.going = torch.arange(len(self.left), device=self.left.device)  # (G,) those that are still written for

    def next_logits(self, written: Tensor) -> Tensor:
        """written (B n, t), the tokens so far -> (B n, V); of an input that has left, zeros."""
        inputs, t = len(self.left), written.shape[1]
        rows = written.shape[0] // inputs
        told = written.view(inputs, rows, t)
        if t == 0:  # the rows are all alike
            slots = self._slots(self.prefix, told[:, :1], 0)
            return self._logits(self.prefix.slots.followed_by(slots)).repeat_interleave(rows, 0)
        self.leave((told == self.model.backbone.end_id).any(2).all(1))
        self._drop()
        if not len(self.going):
            return torch.zeros(inputs * rows, len(self.model.backbone.tokenizer), device=written.device)
        if self.cache is not None:
            logits = self._logits(self._slots(self.prefix, told[self.going, :, -1:], t))
        else:  # everything anew, a row a text
            prefix = self.prefix.repeat(rows)
            logits = self._logits(prefix.slots.followed_by(self._slots(prefix, told[self.going].view(-1, 1, t), t)))
        if len(self.going) == inputs:
            return logits
        whole = logits.new_zeros(inputs, rows, logits.shape[-1])
        whole[self.going] = logits.view(-1, rows, logits.shape[-1])
        return whole.flatten(0, 1)

    def leave(self, done: Tensor) -> None:
        """Inputs (B,) whose texts are decided: nothing more is computed for them."""
        self.left |= done

    def _drop(self) -> None:
        stay = (~self.left[self.going]).nonzero().squeeze(1)
        if len(stay) < len(self.going):
            self.going, self.prefix = self.going[stay], self.prefix.select(stay)
            if self.cache is not None:
                self.cache.select(stay)

    def _slots(self, prefix: Prefix, told: Tensor, t: int) -> Slots:
        """The last tokens (R, n, s) of n texts of t tokens each, step by step, and the n [MASK]s after them: n (s + 1)
        slots."""
        rows, n, steps = told.shape
        masks = told.new_full((rows, n), self.model.backbone.mask_id)
        ids = torch.cat([told.transpose(1, 2).flatten(1), masks], 1)
        time = torch.arange(t - steps + 1, t + 2, device=ids.device).repeat_interleave(n).expand(rows, -1)
        group = torch.arange(1, n + 1, device=ids.device).repeat(steps + 1).expand(rows, -1)
        role = torch.full_like(ids, WRITTEN)
        role[:, -n:] = MASK
        return self.model.written(prefix, ids, time - 1, Layout(role, group, time))

    def _logits(self, slots: Slots) -> Tensor:
        """Of the [MASK]s, row by row."""
        asked = slots.layout.role == MASK
        states = self.model.backbone.states_at(slots, asked, self.cache)
        if self.cache is not None:
            self.cache.forget(len(states) // len(asked))
        logits = self.model.backbone.logits(states).float()
        known = len(self.model.backbone.tokenizer)  # checkpoints pad their embeddings beyond the words there are
        return logits if logits.shape[-1] == known else logits[:, :known]

    def reorder_cache(self, rows: Tensor) -> None:
        """Go on from these rows (B n,), each one of its own input's: what they have written is copied, X is not
        moved."""
        if self.cache is None or not len(self.going):
            return
        n = len(rows) // len(self.left)
        sources = rows.view(-1, n)[self.going] % n  # (G, n)
        steps = (len(self.cache) - self.prefix.slots.positions.shape[1]) // n
        places = torch.arange(steps, device=rows.device).view(1, -1, 1) * n + sources.unsqueeze(1)  # (G, steps, n)
        self.cache.rearrange(places.flatten(1))
