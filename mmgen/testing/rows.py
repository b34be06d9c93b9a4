"""Rows for a backbone: an input, and targets behind it as the masked generator packs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..attention import prefix_layout
from ..configs import BackboneConfig
from ..parts import Backbone
from ..tensors import MASK, PAD, WRITTEN, Layout, Slots, apply
from .suite import Suite
from .toy import TEXTS

Ids = Sequence[int]


def some_ids(backbone: Backbone, count: int) -> list[int]:
    """Different token ids of ordinary words."""
    special = {backbone.start_id, backbone.end_id, backbone.mask_id, backbone.pad_id}
    ids = [*dict.fromkeys(token for text in TEXTS for token in backbone.encode_text(text) if token not in special)]
    assert len(ids) >= count, f"encode_text returns only {len(ids)} different tokens for the suite's texts"
    return ids[:count]


def prefix(backbone: Backbone, inputs: Sequence[Ids], width: int = 0) -> Slots:
    """Inputs of B rows, padded on the right to the longest, or to `width`."""
    ids = pad_sequence([torch.tensor([*row]) for row in inputs], batch_first=True, padding_value=-1)  # (B, P)
    ids = torch.nn.functional.pad(ids, (0, max(0, width - ids.shape[1])), value=-1)
    mask = ids >= 0
    states = backbone.embed(torch.where(mask, ids, backbone.pad_id))
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    return Slots(states, positions, torch.zeros_like(positions), prefix_layout(mask))


def behind(backbone: Backbone, before: Slots, targets: Sequence[Sequence[Ids]], steps: Sequence[int] = ()) -> Slots:
    """Each row's targets behind its input: for each target y_1..y_T the slots y_1..y_(T-1), m_1..m_T. With `steps`,
    only one step t per row, as in writing: y_1..y_(t-1), m_t."""
    rows = []
    for number, groups in enumerate(targets):
        slots = []
        for k, target in enumerate(groups, 1):
            times = range(1, len(target) + 1) if not steps else [steps[number]]
            slots += [(target[t - 1], t, WRITTEN, k) for t in range(1, times[-1])]
            slots += [(backbone.mask_id, t, MASK, k) for t in times]
        rows.append(torch.tensor(slots))  # (S, 4)
    ids, time, role, group = pad_sequence(rows, batch_first=True).unbind(-1)  # padded with role 0, which is PAD
    ids = torch.where(role == PAD, backbone.pad_id, ids)
    positions = (before.layout.real.sum(1, keepdim=True) + time - 1).clamp(min=0)
    return Slots(backbone.embed(ids), positions, torch.zeros_like(positions), Layout(role, group, time))


def pick(slots: Slots, rows: Sequence[int]) -> Slots:
    """These rows, in this order."""
    return apply(slots, lambda tensor: tensor[list(rows)])


def last(backbone: Backbone, slots: Slots) -> Tensor:
    """States (B, L, H) of full rows."""
    return backbone.encode(slots).last


def with_states(slots: Slots, where: Tensor, backbone: Backbone, token: int) -> Slots:
    """Rows with the embedding of `token` at the slots `where` (B, L) bool."""
    replacements = backbone.embed(torch.full_like(slots.positions, token))
    return replace(slots, states=torch.where(where.unsqueeze(-1), replacements, slots.states))


class BuildsRows(Suite[BackboneConfig]):
    """A backbone under test, and rows for it."""

    def backbone(self) -> Backbone:
        """A new backbone in eval mode, with the same weights every time."""
        return self.seeded(self.config().build, texts=TEXTS).eval()

    def rows(self, backbone: Backbone) -> tuple[Slots, Slots, list[list[list[int]]]]:
        """Two inputs of different lengths, the slots of two targets behind each; and those targets."""
        ids = some_ids(backbone, 8)
        before = prefix(backbone, [[backbone.start_id, *ids[:3]], [backbone.start_id, *ids[2:8]]])
        targets = [[ids[3:6] + [backbone.end_id], ids[:2]], [ids[:1], ids[4:7]]]
        return before, behind(backbone, before, targets), targets
