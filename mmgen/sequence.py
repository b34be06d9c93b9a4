"""Rows of a model: segments of inputs laid out in order, with positions and token types; the prefix behind which texts
are written; the slots that overlap some characters of a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from .attention import prefix_layout
from .tensors import Segment, Slots, apply, taken

Part = tuple[str, Segment]  # an input's name, "" for special slots


@dataclass(frozen=True)
class Prefix:
    """The input X of B rows, with what is needed to write behind it. Supports the same operations on rows as a cache
    (`mmgen.attention.Cache`).

    free  the first free position after the prefix
    term  a term that inputs add to the state of every slot after the prefix; None if no input does
    """

    slots: Slots  # (B, P)
    free: Tensor  # (B, 1)
    term: Tensor | None = None  # (B, E)

    def __len__(self) -> int:
        return len(self.free)

    def select(self, rows: Tensor) -> Prefix:
        """The given rows in the given order; rows may repeat."""
        return apply(self, lambda tensor: tensor.index_select(0, rows))

    def repeat(self, times: int) -> Prefix:
        """Every row `times` times in a row."""
        return apply(self, lambda tensor: tensor.repeat_interleave(times, 0))


def lay_out(parts: Sequence[Part]) -> tuple[Slots, Tensor]:
    """Concatenate segments to rows (B, P); also returns the first free position (B, 1). Special slots have the token
    type of the preceding slot, 0 at the beginning."""
    segments = [segment for _, segment in parts]
    mask = torch.cat([segment.mask for segment in segments], 1)  # (B, P)
    positions, free = _lay_out_positions(segments, mask)
    types = torch.zeros_like(positions) if all(segment.types is None for segment in segments) else _lay_out_types(parts)
    names = tuple(name for name, _ in parts if name)
    source, index = (column.expand(len(mask), -1) for column in _sources_and_indices(parts, names))
    states = torch.cat([segment.states for segment in segments], 1)  # (B, P, E)
    return Slots(states, positions, types, prefix_layout(mask), names, source, index), free


def packed(rows: Slots, labels: Tensor) -> tuple[Slots, Tensor]:
    """Rows (B, L) and labels (B, L) with the real slots first, so that a row has padding only at its end, not after
    every input."""
    real = rows.layout.real
    longest = int(real.sum(1).max())
    if longest == real.shape[1]:
        return rows, labels
    order = (~real).long().argsort(dim=1, stable=True)[:, :longest]  # (B, longest)
    return apply(rows, lambda t: taken(t, order)), taken(labels, order)


def slots_between(spans: Sequence[Sequence[int]], first: int, end: int) -> tuple[int, ...]:
    """The slots that overlap the characters `first` to `end` of a text, given the spans of all slots."""
    return tuple(slot for slot, (start, stop) in enumerate(spans) if start < end and stop > first)


def _lay_out_positions(segments: Sequence[Segment], mask: Tensor) -> tuple[Tensor, Tensor]:
    """The positions (B, P), and the first free position (B, 1)."""
    if all(segment.positions is None for segment in segments):
        return _count_positions(mask), mask.sum(1, keepdim=True)
    positions, free = [], mask.new_zeros(len(mask), 1, dtype=torch.long)
    for segment in segments:
        offsets = segment.positions  # (B, N)
        offsets = _count_positions(segment.mask) if offsets is None else offsets.masked_fill(~segment.mask, 0)
        positions.append(torch.where(offsets < 0, offsets, free + offsets))
        free = free + F.pad((offsets + 1) * segment.mask, (0, 1)).amax(1, keepdim=True)  # at least 0, from the padding
    return torch.cat(positions, 1), free


def _count_positions(mask: Tensor) -> Tensor:
    """Positions counted over real slots, so that padding does not change the positions of a row."""
    return (mask.cumsum(1) - 1).clamp(min=0)


def _lay_out_types(parts: Sequence[Part]) -> Tensor:
    """The token types (B, P)."""
    last = torch.zeros_like(parts[0][1].mask[:, :1], dtype=torch.long)  # (B, 1)
    columns = []
    for name, segment in parts:
        types = last.expand(segment.mask.shape)
        if name:
            types = torch.zeros_like(types) if segment.types is None else segment.types.masked_fill(~segment.mask, 0)
            known, real = torch.cat([last, types], 1), F.pad(segment.mask, (1, 0), value=True)
            places = torch.arange(known.shape[1], device=known.device)
            last = known.gather(1, (places * real).amax(1, keepdim=True))  # of the last real slot
        columns.append(types)
    return torch.cat(columns, 1)


def _sources_and_indices(parts: Sequence[Part], names: Sequence[str]) -> tuple[Tensor, Tensor]:
    """`Slots.source` and `Slots.index`, (P,), the same in every row."""
    source, index = [], []
    for name, segment in parts:
        length, device = segment.mask.shape[1], segment.mask.device
        source.append(torch.full((length,), names.index(name) if name else -1, device=device))
        index.append(torch.arange(length, device=device) if name else source[-1])
    return torch.cat(source), torch.cat(index)
