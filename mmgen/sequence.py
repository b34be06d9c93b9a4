"""Rows of a model: segments of inputs laid out in order, with positions and token types; the prefix behind which texts
are written; the slots that overlap some characters of a text; and checks of what embedders return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .attention import prefix_layout
from .prompts import (  # noqa: F401 -- plugins may import them from here too
    AVOID,
    PROMPT_COUNTS,
    Prompts,
    behind_prompts,
    one_per_prompt,
    padded,
    prompt_slots,
    prompts_in,
    prompts_of,
    texts_to_avoid,
    with_prompts,
)
from .tensors import Segment, Slots, apply, describe_value, taken

if TYPE_CHECKING:
    from .parts import Backbone, Embedder


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


def segment_problem(segment: Any, rows: int, width: int) -> str:
    """What is wrong with the result of `Embedder.forward` for B = `rows` rows and a backbone with this input width;
    empty if nothing is. Checks only shapes and dtypes, since reading values would wait for the device."""
    if not isinstance(segment, Segment):
        return f"forward must return a mmgen.tensors.Segment, not {describe_value(segment)}"
    shape = tuple(segment.states.shape)
    if len(shape) != 3 or shape[0] != rows:
        return f"states must have shape (B, N, E) with B = {rows}, not {shape}"
    if shape[2] != width:
        return f"states have width {shape[2]}, but input_size of the backbone is {width}"
    if segment.mask.shape != shape[:2] or segment.mask.dtype != torch.bool:
        return f"mask must be bool of shape {shape[:2]}, not {segment.mask.dtype} {tuple(segment.mask.shape)}"
    for name, column in (("types", segment.types), ("positions", segment.positions)):
        if column is not None and (column.shape != shape[:2] or column.dtype != torch.long):
            return f"{name} must be int64 of shape {shape[:2]}, not {column.dtype} {tuple(column.shape)}"
    return ""


def terms_problem(added: Any, term: Any, slots: Slots) -> str:
    """What is wrong with the results of `Embedder.add` and `Embedder.tail_term` for slots (B, L); empty if nothing
    is."""
    rows, length, width = slots.states.shape
    for name, value, shape in (("add", added, (rows, length, width)), ("tail_term", term, (rows, width))):
        if value is not None and (not isinstance(value, Tensor) or value.shape != shape):
            return f"{name} must return a tensor of shape {shape} or None, not {describe_value(value)}"
    return ""


def sharing_problem(embedder: Embedder, backbone: Backbone) -> str:
    """An error if an embedder contains parameters of the backbone; empty if it does not."""
    parameters = set(embedder.parameters())
    if shared := [name for name, parameter in backbone.named_parameters() if parameter in parameters]:
        return (
            f"contains the backbone's {shared[0]} as a parameter, which would be saved twice and trained with the "
            "input; write self._backbone = [backbone], a list"
        )
    return ""


def unmet(segment: Segment, backbone: Backbone) -> str:
    """The token type or extra position of a segment that the backbone does not have; empty if it has all. Segments with
    default types and positions are not checked, since reading values waits for the device."""
    if segment.types is not None and backbone.types:
        lowest, highest = _range_of_real(segment.types, segment.mask)
        if lowest < 0 or highest >= backbone.types:
            kind = lowest if lowest < 0 else highest
            return f"uses token type {kind}, but the backbone {types_of(backbone)}"
    if segment.positions is not None:
        lowest, _ = _range_of_real(segment.positions, segment.mask)
        if -lowest > backbone.extra_positions:
            return f"uses extra position {lowest}, but the backbone has {backbone.extra_positions or 'none'}"
    return ""


def types_of(backbone: Backbone) -> str:
    return f"has token types 0 to {backbone.types - 1}" if backbone.types else "has no token types"


def _range_of_real(column: Tensor, mask: Tensor) -> list[int]:
    """The lowest and the highest number (B, N) of real slots."""
    ends: list[int] = torch.stack(torch.aminmax(column.masked_fill(~mask, 0))).tolist() if mask.numel() else [0, 0]
    return ends


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
