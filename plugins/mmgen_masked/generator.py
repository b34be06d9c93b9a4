"""The masked-decoding generator: P(y_t | X, y_<t) is read off a [MASK] that sees X and y_<t (bertgen, section 3.2).

All positions of all questions of one input are learnt in one pass: a question y_1..y_T is laid out as
y_1..y_(T-1), m_1..m_T, where m_t is a [MASK] with y_t's position. Who sees whom is `mmgen.attention`'s to say.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from mmgen import Decoding
from mmgen.objectives import Generator, Sequencer, TextTargets
from mmgen.parts import Backbone
from mmgen.search import Limits, as_generations, search
from mmgen.tensors import MASK, PAD, WRITTEN, Batch, Generation, Layout, Loss, Tail, Targets

from . import Masked
from .diverse import diverse_beam_search
from .writing import Writing

HEAD_SLOTS = 1024  # predicted slots that go through the vocabulary head at a time, so that logits stay small


class MaskedTargets(TextTargets):
    """Lays targets out, in loader workers."""

    def __init__(self, config: Masked, backbone: Backbone) -> None:
        super().__init__(backbone, config.max_tokens)
        self.mask_id, self.pad_id = backbone.mask_id, backbone.pad_id

    def lay_out(self, targets: Sequence[Sequence[Sequence[int]]]) -> Tail:
        rows = [[slot for k, y in enumerate(questions, 1) for slot in self._slots(y, k)] for questions in targets]
        longest = max(map(len, rows))
        padding: list[tuple[int, ...]] = [(self.pad_id, 0, PAD, 0, 0, -100)]
        table = torch.from_numpy(np.array([row + padding * (longest - len(row)) for row in rows]))  # (B, S, 6)
        ids, offsets, role, group, time, labels = table.unbind(-1)
        return Tail(ids, offsets, Layout(role, group, time), labels)

    def _slots(self, target: Sequence[int], group: int) -> list[tuple[int, ...]]:
        """One target's 2T - 1 slots: y_1..y_(T-1), m_1..m_T, each as (id, offset, role, group, time, label)."""
        written: list[tuple[int, ...]] = [(y, t - 1, WRITTEN, group, t, -100) for t, y in enumerate(target[:-1], 1)]
        masks: list[tuple[int, ...]] = [(self.mask_id, t - 1, MASK, group, t, y) for t, y in enumerate(target, 1)]
        return written + masks

    def slots(self, tokens: int) -> int:
        return 2 * tokens - 1


class MaskedGenerator(Generator):
    """Learns and writes; has no parameters of its own."""

    def __init__(self, config: Masked, backbone: Backbone) -> None:
        super().__init__()
        self.reader = MaskedTargets(config, backbone)

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        assert targets.tail is not None  # its reader lays one out
        rows, labels = model.rows(batch, targets.tail)
        asked = labels != -100
        states = model.backbone.states_at(rows, asked)
        return Loss({"loss": self._loss(model.backbone, states, labels[asked])}, rows.counts)

    def _loss(self, backbone: Backbone, states: Tensor, labels: Tensor) -> Tensor:
        """() the summed cross-entropy over predicted slots: states (n, H), labels (n,)."""

        def chunk(states: Tensor, labels: Tensor) -> Tensor:
            return F.cross_entropy(backbone.logits(states).float(), labels, reduction="sum")

        chunks = list(zip(states.split(HEAD_SLOTS), labels.split(HEAD_SLOTS), strict=True))
        if len(chunks) == 1:
            return chunk(*chunks[0])
        # logits are made again on the way back instead of being kept
        return torch.stack([checkpoint(chunk, *part, use_reentrant=False) for part in chunks]).sum()

    def generate(self, model: Sequencer, batch: Batch, options: Decoding) -> list[list[Generation]]:
        backbone, writing = model.backbone, Writing(model, model.prefix(batch))
        if options.num_beam_groups > 1:
            found = diverse_beam_search(writing, options, self.max_tokens, backbone.end_id)
        else:
            start = torch.full_like(writing.prefix.free, backbone.start_id)
            found = search(writing, start, options, Limits.of(backbone, self.max_tokens))
        return as_generations(found, batch.ids, backbone)
