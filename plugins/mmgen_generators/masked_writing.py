"""Next-token logits of the masked generator while it writes: many rows, cached keys and values if there is a cache.

The n rows of an input are n targets of one packed row, as in training: X and its keys and values are stored once,
regardless of n. A step feeds two slots per target, the last token and a [MASK] at the next position, and then removes
the [MASK]s from the cache. The tokens follow X, and the prompts of all targets, step by step: in each step one slot of
every target.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mmgen.objectives import Sequencer
from mmgen.prompts import Prompts
from mmgen.sequence import Prefix
from mmgen.tensors import MASK, WRITTEN, Layout, Slots

from .stepwise import behind_prompts, rows_to_keep


class MaskedStepper:
    """The state of a search over B inputs with n rows each: a `mmgen.search.Stepper`. For an input with K prompts it is
    K searches, and n counts the rows of all of them."""

    def __init__(self, model: Sequencer, prefix: Prefix, prompts: Prompts | None = None) -> None:
        self.model, self.prefix, self.prompts = model, prefix, prompts  # the prefix of active inputs
        searches = len(prefix) * (1 if prompts is None else prompts.most)
        self.begin = torch.full((searches, 1), model.backbone.start_id, device=prefix.free.device)
        self.cache = model.backbone.new_cache() if model.backbone.caches else None
        self.finished = torch.zeros_like(prefix.free.squeeze(1), dtype=torch.bool)  # (B,) finished inputs
        self.active = torch.arange(len(self.finished), device=self.finished.device)  # (G,) active inputs

    def next_logits(self, written: Tensor) -> Tensor:
        """Next-token logits (B n, V) after the tokens `written` (B n, t); zeros for finished inputs."""
        inputs, t = len(self.finished), written.shape[1]
        rows = written.shape[0] // inputs
        tokens = written.view(inputs, rows, t)
        prompts = None if self.prompts is None else self.prompts.for_texts(rows)  # (B, n, C)
        if t == 0:
            alike = 1 if prompts is None else rows  # without prompts, all rows of an input are equal
            slots = self._prompted(self.prefix, prompts, tokens[:, :alike], 0)
            return self._logits(self.prefix.slots.followed_by(slots)).repeat_interleave(rows // alike, 0)
        self.leave((tokens == self.model.backbone.end_id).any(2).all(1))
        self._drop_finished()
        if not len(self.active):
            return torch.zeros(inputs * rows, len(self.model.backbone.tokenizer), device=written.device)
        prompts = None if prompts is None else prompts[self.active]
        if self.cache is not None:
            logits = self._logits(self._slots(self.prefix, tokens[self.active, :, -1:], t, prompts))
        else:  # encode everything again, one row per text
            prefix, texts = self.prefix.repeat(rows), tokens[self.active].view(-1, 1, t)
            prompts = None if prompts is None else prompts.view(len(texts), 1, -1)
            logits = self._logits(prefix.slots.followed_by(self._prompted(prefix, prompts, texts, t)))
        if len(self.active) == inputs:
            return logits
        all_logits = logits.new_zeros(inputs, rows, logits.shape[-1])
        all_logits[self.active] = logits.view(-1, rows, logits.shape[-1])
        return all_logits.flatten(0, 1)

    def leave(self, done: Tensor) -> None:
        """Mark the inputs whose searches (B K,) are all in `done` as finished; nothing more is computed for them."""
        self.finished |= done.view(len(self.finished), -1).all(1)

    def _drop_finished(self) -> None:
        stay = rows_to_keep(self.finished[self.active])
        if len(stay) < len(self.active):
            self.active, self.prefix = self.active[stay], self.prefix.select(stay)
            if self.cache is not None:
                self.cache.select(stay)

    def _prompted(self, prefix: Prefix, prompts: Tensor | None, tokens: Tensor, t: int) -> Slots:
        return behind_prompts(self.model, prefix, prompts, self._slots(prefix, tokens, t, prompts))

    def _slots(self, prefix: Prefix, tokens: Tensor, t: int, prompts: Tensor | None = None) -> Slots:
        """The n (s + 1) slots of the last `tokens` (R, n, s) of n texts of t tokens, step by step, and of the n [MASK]s
        after them. The positions of a text continue those of its prompt, of (R, n, C)."""
        rows, n, steps = tokens.shape
        masks = tokens.new_full((rows, n), self.model.backbone.mask_id)
        ids = torch.cat([tokens.transpose(1, 2).flatten(1), masks], 1)
        time = torch.arange(t - steps + 1, t + 2, device=ids.device).repeat_interleave(n).expand(rows, -1)
        group = torch.arange(1, n + 1, device=ids.device).repeat(steps + 1).expand(rows, -1)
        role = torch.full_like(ids, WRITTEN)
        role[:, -n:] = MASK
        offsets = time - 1 if prompts is None else time - 1 + (prompts >= 0).sum(-1).repeat(1, steps + 1)
        return self.model.written(prefix, ids, offsets, Layout(role, group, time))

    def _logits(self, slots: Slots) -> Tensor:
        """Logits of the [MASK]s, row by row."""
        mask_slots = slots.layout.role == MASK
        states = self.model.backbone.states_at(slots, mask_slots, self.cache)
        if self.cache is not None:
            self.cache.forget(len(states) // len(mask_slots))
        logits = self.model.backbone.logits(states).float()
        words = len(self.model.backbone.tokenizer)  # checkpoints may pad the embeddings beyond the vocabulary
        return logits if logits.shape[-1] == words else logits[:, :words]

    def reorder_cache(self, rows: Tensor) -> None:
        """Continue from these rows (B n,), each of the same input: their tokens are copied in the cache; X stays."""
        if self.cache is None or not len(self.active):
            return
        n = len(rows) // len(self.finished)
        sources = rows.view(-1, n)[self.active] % n  # (G, n)
        prompts = 0 if self.prompts is None else n * self.prompts.ids.shape[-1]
        steps = (len(self.cache) - self.prefix.slots.positions.shape[1] - prompts) // n
        places = torch.arange(steps, device=rows.device).view(1, -1, 1) * n + sources.unsqueeze(1)  # (G, steps, n)
        self.cache.rearrange(places.flatten(1))
