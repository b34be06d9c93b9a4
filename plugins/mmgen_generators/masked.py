"""The masked-decoding generator: a [MASK] that sees X and y_<t predicts P(y_t | X, y_<t) (bertgen, section 3.2).

All positions of all questions of one input are trained in one pass: a question y_1..y_T is laid out as
y_1..y_(T-1), m_1..m_T, where m_t is a [MASK] with y_t's position. `mmgen.attention` defines which slot sees which.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from mmgen import Decoding
from mmgen.examples import Generation
from mmgen.objectives import Generator, Sequencer, TextTargets
from mmgen.parts import Backbone
from mmgen.prompts import Prompts
from mmgen.search import as_generations, search
from mmgen.tensors import MASK, PAD, WRITTEN, Batch, Layout, Loss, Tail, Targets

from . import Masked
from .masked_writing import MaskedStepper

HEAD_SLOTS = 1024  # predicted slots per call of the vocabulary head, to limit the memory of logits


class MaskedTargets(TextTargets):
    """Lays out targets, in loader workers."""

    reads_prompts = True

    def __init__(self, config: Masked, backbone: Backbone) -> None:
        super().__init__(backbone, config.max_tokens)
        self.mask_id = backbone.mask_id

    def lay_out(self, targets: Sequence[Sequence[Sequence[int]]]) -> Tail:
        rows = [[slot for k, y in enumerate(questions, 1) for slot in self._slots(y, k)] for questions in targets]
        longest = max(map(len, rows))
        padding: list[tuple[int, ...]] = [(self.pad_id, 0, PAD, 0, 0, -100)]
        table = torch.from_numpy(np.array([row + padding * (longest - len(row)) for row in rows]))  # (B, S, 6)
        ids, offsets, role, group, time, target_ids = table.unbind(-1)
        return Tail(ids, offsets, Layout(role, group, time), target_ids)

    def _slots(self, target: Sequence[int], group: int) -> list[tuple[int, ...]]:
        """The 2T - 1 slots of one target: y_1..y_(T-1), m_1..m_T, as tuples (id, offset, role, group, time, label)."""
        written: list[tuple[int, ...]] = [(y, t - 1, WRITTEN, group, t, -100) for t, y in enumerate(target[:-1], 1)]
        masks: list[tuple[int, ...]] = [(self.mask_id, t - 1, MASK, group, t, y) for t, y in enumerate(target, 1)]
        return written + masks

    def slots(self, tokens: int) -> int:
        return 2 * tokens - 1


class MaskedGenerator(Generator):
    """Trains on targets and generates texts; has no parameters."""

    def __init__(self, config: Masked, backbone: Backbone) -> None:
        super().__init__()
        self.reader = MaskedTargets(config, backbone)

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        assert targets.tail is not None  # laid out by the reader
        rows, target_ids = model.rows(batch, targets.tail)
        predicted = target_ids != -100
        states = model.backbone.states_at(rows, predicted)
        return Loss({"loss": self._loss(model.backbone, states, target_ids[predicted])})

    def _loss(self, backbone: Backbone, states: Tensor, target_ids: Tensor) -> Tensor:
        """Summed cross-entropy () over predicted slots: states (n, H), target_ids (n,)."""

        def chunk(states: Tensor, labels: Tensor) -> Tensor:
            return F.cross_entropy(backbone.logits(states).float(), labels, reduction="sum")

        chunks = list(zip(states.split(HEAD_SLOTS), target_ids.split(HEAD_SLOTS), strict=True))
        if len(chunks) == 1:
            return chunk(*chunks[0])
        # checkpointing: the backward pass computes the logits again instead of storing them
        return torch.stack([checkpoint(chunk, *part, use_reentrant=False) for part in chunks]).sum()

    def generate(self, model: Sequencer, batch: Batch, options: Decoding) -> list[list[Generation]]:
        backbone, prompts = model.backbone, Prompts.of(batch)
        stepper = MaskedStepper(model, model.prefix(batch), prompts)
        start = torch.full((stepper.searches, 1), backbone.start_id, device=stepper.prefix.free.device)
        results = search(stepper, start, options, backbone, self.max_tokens)
        return as_generations(results, batch.ids, backbone, prompts)
