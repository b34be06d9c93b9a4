"""Rows in the tests of backbones: inputs as slots, targets packed behind them as the masked generator does, states."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..attention import prefix_layout
from ..parts import Backbone
from ..tensors import MASK, WRITTEN, Slots, apply, tail_of
from .toy import TEXTS

Ids = Sequence[int]


def some_ids(backbone: Backbone, count: int) -> list[int]:
    """Different token ids of ordinary words."""
    special = {backbone.start_id, backbone.end_id, backbone.mask_id, backbone.pad_id}
    ids = [*dict.fromkeys(token for text in TEXTS for token in backbone.encode_text(text) if token not in special)]
    return ids[:count]


def prefix(backbone: Backbone, inputs: Sequence[Ids]) -> Slots:
    """Inputs of B rows, padded on the right to the longest."""
    width = max(map(len, inputs))
    ids = torch.tensor([[*row] + [-1] * (width - len(row)) for row in inputs])  # (B, P)
    mask = ids >= 0
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    states = backbone.embed(torch.where(mask, ids, backbone.pad_id))
    return Slots(states, positions, torch.zeros_like(positions), prefix_layout(mask))


def behind(backbone: Backbone, before: Slots, targets: Sequence[Sequence[Ids]], step: int = 0) -> Slots:
    """Each row's targets behind its input: for each target y_1..y_T the slots y_1..y_(T-1), m_1..m_T. With `step`, only
    this step t of all targets, as in writing: y_1..y_(t-1), m_t."""
    rows = []
    for groups in targets:
        slots = []
        for k, target in enumerate(groups, 1):
            end = step or len(target)
            slots += [(y, t - 1, WRITTEN, k, t, -100) for t, y in enumerate(target[: end - 1], 1)]
            slots += [(backbone.mask_id, t - 1, MASK, k, t, -100) for t in range(step or 1, end + 1)]
        rows.append(slots)
    tail, _ = tail_of(rows, backbone.pad_id)
    positions = before.layout.real.sum(1, keepdim=True) + tail.offsets
    return Slots(backbone.embed(tail.ids), positions, torch.zeros_like(positions), tail.layout)


def pick(slots: Slots, rows: Sequence[int]) -> Slots:
    """These rows, in this order."""
    return apply(slots, lambda tensor: tensor[list(rows)])


def last(backbone: Backbone, slots: Slots) -> Tensor:
    """States (B, L, H) of full rows."""
    return backbone.encode(slots).last
