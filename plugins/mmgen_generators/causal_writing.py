"""Next-token logits of the causal generator while it writes: rows of one input share its cache, if there is one."""

from __future__ import annotations

import torch
from torch import Tensor

from mmgen.objectives import Sequencer
from mmgen.prompts import Prompts
from mmgen.sequence import Prefix
from mmgen.tensors import WRITTEN, Layout, Slots

from .stepwise import behind_prompts


class CausalStepper:
    """The state of a search over B inputs with n rows each: a `mmgen.search.Stepper`. An input is encoded once,
    regardless of n. For an input with K prompts it is K searches, with n rows for all of them."""

    def __init__(self, model: Sequencer, prefix: Prefix, begin_id: int, prompts: Prompts | None = None) -> None:
        self.model, self.prefix, self.prompts = model, prefix, prompts
        searches = len(prefix) * (1 if prompts is None else prompts.most)
        self.begin = torch.full((searches, 1), begin_id, device=prefix.free.device)
        self.cache = model.backbone.new_cache() if model.backbone.caches else None

    def next_logits(self, written: Tensor) -> Tensor:
        """Next-token logits (B n, V) after the tokens `written` (B n, t)."""
        begin = self.begin.repeat_interleave(len(written) // len(self.begin), 0)
        repeats, written = len(written) // len(self.prefix), torch.cat([begin, written], 1)
        prompts = None if self.prompts is None else self._prompts_of(len(written), self.prompts)
        if self.cache is None:
            prefix = self.prefix.repeat(repeats)
            return self._logits(prefix.slots.followed_by(self._prompted(prefix, written, prompts)))
        if written.shape[1] > 1:
            return self._logits(self._slots(self.prefix, written, prompts, last=1))
        if prompts is None:
            logits = self._logits(self.prefix.slots.followed_by(self._slots(self.prefix, written[::repeats])))
        else:
            self.model.backbone.encode(self.prefix.slots, self.cache)
        self.cache.repeat(repeats)
        self.prefix = self.prefix.repeat(repeats)
        if prompts is not None:
            return self._logits(self._prompted(self.prefix, written, prompts))
        return logits.repeat_interleave(repeats, 0)

    def _prompts_of(self, rows: int, prompts: Prompts) -> Tensor:
        """(R, 1, C) the prompts of R rows."""
        return prompts.for_texts(rows // len(prompts.ids)).flatten(0, 1).unsqueeze(1)

    def _prompted(self, prefix: Prefix, written: Tensor, prompts: Tensor | None) -> Slots:
        return behind_prompts(self.model, prefix, prompts, self._slots(prefix, written, prompts))

    def _slots(self, prefix: Prefix, written: Tensor, prompts: Tensor | None = None, last: int = 0) -> Slots:
        """Slots of the `last` tokens written, by default of all, behind prompts (R, 1, C)."""
        time = torch.arange(1, written.shape[1] + 1, device=written.device).expand_as(written)[:, -last:]
        ids = written[:, -last:]
        layout = Layout(torch.full_like(ids, WRITTEN), torch.ones_like(ids), time)
        offsets = time - 1 if prompts is None else time - 1 + (prompts >= 0).sum(-1)
        return self.model.written(prefix, ids, offsets, layout)

    def _logits(self, slots: Slots) -> Tensor:
        return self.model.backbone.logits(self.model.backbone.encode(slots, self.cache).last[:, -1]).float()

    def reorder_cache(self, rows: Tensor) -> None:
        """Continue from these rows. Rows of one input stay together, so the cached inputs do not change."""
        if self.cache is not None:
            self.cache.select(rows)
