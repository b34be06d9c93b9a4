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
from mmgen.parts import Backbone, Generator
from mmgen.tensors import MASK, PAD, WRITTEN, Batch, Generation, Layout, Loss, Tail

from . import Masked
from .search import search

HEAD_SLOTS = 1024  # predicted slots that go through the vocabulary head at a time, so that logits stay small


class MaskedGenerator(Generator):
    """Learns and writes; has no parameters of its own."""

    def __init__(self, config: Masked, backbone: Backbone) -> None:
        super().__init__()
        self.max_tokens = config.max_tokens
        self.mask_id, self.pad_id = backbone.mask_id, backbone.pad_id

    def lay_out(self, targets: Sequence[Sequence[Sequence[int]]]) -> Tail:
        rows = [[slot for k, y in enumerate(questions, 1) for slot in self._slots(y, k)] for questions in targets]
        longest = max(map(len, rows))
        padding = [(self.pad_id, 0, PAD, 0, 0, -100)]
        table = torch.from_numpy(np.array([row + padding * (longest - len(row)) for row in rows]))  # (B, S, 6)
        ids, offsets, role, group, time, labels = table.unbind(-1)
        return Tail(ids, offsets, Layout(role, group, time), labels)

    def _slots(self, target: Sequence[int], group: int) -> list[tuple[int, ...]]:
        """One target's 2T - 1 slots: y_1..y_(T-1), m_1..m_T, each as (id, offset, role, group, time, label)."""
        told = [(y, t - 1, WRITTEN, group, t, -100) for t, y in enumerate(target[:-1], 1)]
        asked = [(self.mask_id, t - 1, MASK, group, t, y) for t, y in enumerate(target, 1)]
        return told + asked

    def forward(self, model, batch: Batch) -> Loss:
        rows, labels = model.rows(batch)
        asked = labels != -100
        return self._loss(model.backbone, model.backbone.states_at(rows, asked), labels[asked])

    def _loss(self, backbone: Backbone, states: Tensor, labels: Tensor) -> Loss:
        """Cross-entropy over predicted slots: states (n, H), labels (n,)."""

        def chunk(states: Tensor, labels: Tensor) -> Tensor:
            return F.cross_entropy(backbone.logits(states).float(), labels, reduction="sum")

        chunks = list(zip(states.split(HEAD_SLOTS), labels.split(HEAD_SLOTS), strict=True))
        if len(chunks) == 1:
            total = chunk(*chunks[0])
        else:  # logits are made again on the way back instead of being kept
            total = torch.stack([checkpoint(chunk, *part, use_reentrant=False) for part in chunks]).sum()
        return Loss(total, torch.tensor(len(labels), device=labels.device))

    def generate(self, model, batch: Batch, options: Decoding) -> list[list[Generation]]:
        found = search(model, model.prefix(batch), options, self.max_tokens)
        per_example = options.num_return_sequences
        texts = []
        for row, (tokens, score) in enumerate(found):
            tokens = tokens[: tokens.index(model.backbone.end_id) + 1] if model.backbone.end_id in tokens else tokens
            texts.append(
                Generation(batch.ids[row // per_example], model.backbone.decode_text(tokens), tuple(tokens), score)
            )
        return [texts[i : i + per_example] for i in range(0, len(texts), per_example)]
