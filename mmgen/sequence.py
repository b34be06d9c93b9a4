"""How inputs stand in a row: one segment after the other, with their positions and token types; what has to be known to
write behind them; where the slots of a text stand in it; and what embedders must give for that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from .attention import prefix_layout
from .tensors import Segment, Slots, apply, describe_value, taken

if TYPE_CHECKING:
    from .parts import Backbone, Embedder

Part = tuple[str, Segment]  # an input's name, "" for special slots


@dataclass(frozen=True)
class Prefix:
    """The input X of B rows, and what has to be known to write behind it. What is done to the rows of a cache
    (`mmgen.attention.Cache`) can be done to it.

    free  the first position that is free behind it
    term  what inputs add to the state of every slot behind it, where one does
    """

    slots: Slots  # (B, P)
    free: Tensor  # (B, 1)
    term: Tensor | None = None  # (B, E)

    def __len__(self) -> int:
        return len(self.free)

    def select(self, rows: Tensor) -> Prefix:
        """These rows, in this order; a row may come more than once."""
        return apply(self, lambda tensor: tensor.index_select(0, rows))

    def repeat(self, times: int) -> Prefix:
        """Every row `times` times in a row."""
        return apply(self, lambda tensor: tensor.repeat_interleave(times, 0))


def lay_out(parts: Sequence[Part]) -> tuple[Slots, Tensor]:
    """Segments one after the other as rows (B, P), and the first position (B, 1) that is free behind them. Special
    slots take the token type of what stands before them, 0 at first."""
    segments = [segment for _, segment in parts]
    mask = torch.cat([segment.mask for segment in segments], 1)  # (B, P)
    positions, free = _positions(segments, mask)
    types = torch.zeros_like(positions) if all(segment.types is None for segment in segments) else _types(parts)
    names = tuple(name for name, _ in parts if name)
    source, index = (column.expand(len(mask), -1) for column in _origins(parts, names))
    states = torch.cat([segment.states for segment in segments], 1)  # (B, P, E)
    return Slots(states, positions, types, prefix_layout(mask), names, source, index), free


def packed(rows: Slots, labels: Tensor) -> tuple[Slots, Tensor]:
    """Rows (B, L) and labels (B, L) of their slots, the real ones in front: a row is padded once, at its end, and not
    behind every input."""
    real = rows.layout.real
    longest = int(real.sum(1).max())
    if longest == real.shape[1]:
        return rows, labels
    order = (~real).long().argsort(dim=1, stable=True)[:, :longest]  # (B, longest)
    return apply(rows, lambda t: taken(t, order)), taken(labels, order)


def letters(tokenizer: Any, text: str) -> list[tuple[int, int]]:
    """Where each of a text's tokens stands in it: its first character, and the last + 1. Only fast tokenizers know."""
    told = tokenizer(text, add_special_tokens=False, verbose=False, return_offsets_mapping=True)
    return cast("list[tuple[int, int]]", told["offset_mapping"])


def slots_between(spans: Sequence[Sequence[int]], first: int, end: int) -> tuple[int, ...]:
    """Slots, of which `spans` says where they stand in their text, that stand within these characters of it."""
    return tuple(slot for slot, (start, stop) in enumerate(spans) if start < end and stop > first)


def segment_problem(segment: Any, rows: int, width: int) -> str:
    """What is wrong with what `Embedder.forward` gives for B = `rows` rows, in front of a backbone that reads states of
    this width; empty when nothing is. Shapes and types alone: to look at values would wait for the device."""
    if not isinstance(segment, Segment):
        return f"forward gives {describe_value(segment)}, not a mmgen.tensors.Segment"
    shape = tuple(segment.states.shape)
    if len(shape) != 3 or shape[0] != rows:
        return f"states are {shape}, not (B, N, E) with B = {rows}"
    if shape[2] != width:
        return f"states have width {shape[2]}; the backbone reads {width}, its input_size"
    if segment.mask.shape != shape[:2] or segment.mask.dtype != torch.bool:
        return f"mask is {segment.mask.dtype} {tuple(segment.mask.shape)}, not bool {shape[:2]}"
    for name, column in (("types", segment.types), ("positions", segment.positions)):
        if column is not None and (column.shape != shape[:2] or column.dtype != torch.long):
            return f"{name} are {column.dtype} {tuple(column.shape)}, not int64 {shape[:2]}"
    return ""


def terms_problem(added: Any, term: Any, slots: Slots) -> str:
    """What is wrong with what `Embedder.add` and `Embedder.tail_term` give for slots (B, L); empty when nothing is."""
    rows, length, width = slots.states.shape
    for name, value, shape in (("add", added, (rows, length, width)), ("tail_term", term, (rows, width))):
        if value is not None and (not isinstance(value, Tensor) or value.shape != shape):
            return f"{name} gives {describe_value(value)}; it must be a tensor of the shape {shape}, or None"
    return ""


def sharing_problem(embedder: Embedder, backbone: Backbone) -> str:
    """What is wrong where an embedder has parameters of the backbone among its own; empty when it has none."""
    own = set(embedder.parameters())
    if shared := [name for name, parameter in backbone.named_parameters() if parameter in own]:
        return (
            f"has the backbone's {shared[0]} among its own parameters, which would be saved twice and trained with the "
            "input; write self._backbone = [backbone], a list"
        )
    return ""


def unmet(segment: Segment, backbone: Backbone) -> str:
    """Which token type or extra position of a segment the backbone lacks; empty when it has all. Looking waits for the
    device, so usual segments are not looked at."""
    if segment.types is not None and backbone.types:
        lowest, highest = _ends(segment.types, segment.mask)
        if lowest < 0 or highest >= backbone.types:
            kind = lowest if lowest < 0 else highest
            return f"asks for token type {kind}, and the backbone {types_of(backbone)}"
    if segment.positions is not None:
        lowest, _ = _ends(segment.positions, segment.mask)
        if -lowest > backbone.extra_positions:
            return f"asks for extra position {lowest}, and the backbone has {backbone.extra_positions or 'none'}"
    return ""


def types_of(backbone: Backbone) -> str:
    return f"has token types 0 to {backbone.types - 1}" if backbone.types else "has no token types"


def _ends(column: Tensor, mask: Tensor) -> list[int]:
    """The lowest and the highest number (B, N) of real slots."""
    ends: list[int] = torch.stack(torch.aminmax(column.masked_fill(~mask, 0))).tolist() if mask.numel() else [0, 0]
    return ends


def _positions(segments: Sequence[Segment], mask: Tensor) -> tuple[Tensor, Tensor]:
    """(B, P), and the first free one (B, 1)."""
    if all(segment.positions is None for segment in segments):
        return _counted(mask), mask.sum(1, keepdim=True)
    found, free = [], mask.new_zeros(len(mask), 1, dtype=torch.long)
    for segment in segments:
        own = segment.positions
        offsets = _counted(segment.mask) if own is None else own.masked_fill(~segment.mask, 0)  # (B, N)
        found.append(torch.where(offsets < 0, offsets, free + offsets))
        free = free + F.pad((offsets + 1) * segment.mask, (0, 1)).amax(1, keepdim=True)  # at least the 0 of the padding
    return torch.cat(found, 1), free


def _counted(mask: Tensor) -> Tensor:
    """Over real slots, so that a padded row stands where it would stand alone."""
    return (mask.cumsum(1) - 1).clamp(min=0)


def _types(parts: Sequence[Part]) -> Tensor:
    """(B, P)"""
    last = torch.zeros_like(parts[0][1].mask[:, :1], dtype=torch.long)  # (B, 1)
    found = []
    for name, segment in parts:
        own = last.expand(segment.mask.shape)
        if name:
            own = torch.zeros_like(own) if segment.types is None else segment.types.masked_fill(~segment.mask, 0)
            known, real = torch.cat([last, own], 1), F.pad(segment.mask, (1, 0), value=True)
            places = torch.arange(known.shape[1], device=known.device)
            last = known.gather(1, (places * real).amax(1, keepdim=True))  # of the last real slot
        found.append(own)
    return torch.cat(found, 1)


def _origins(parts: Sequence[Part], names: Sequence[str]) -> tuple[Tensor, Tensor]:
    """`Slots.source` and `Slots.index`, (P,): they are the same in every row."""
    source, index = [], []
    for name, segment in parts:
        length, device = segment.mask.shape[1], segment.mask.device
        source.append(torch.full((length,), names.index(name) if name else -1, device=device))
        index.append(torch.arange(length, device=device) if name else source[-1])
    return torch.cat(source), torch.cat(index)
