"""What `model` is to its parts: lays out segments of inputs in rows, with positions and token types; the prefix.

Rows are laid out as in the paper (bertgen, section 3): `[CLS] image [SEP] caption`, then the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .attention import prefix_layout
from .configs import PROMPT, SequenceConfig
from .errors import DataError
from .parts import Backbone
from .tensors import Batch, Layout, Segment, Slots, Tail, apply, taken

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


@dataclass(frozen=True)
class EncodedInputs:
    """The encoded prefixes of a batch.

    states  (B, P, H) last states of all slots
    inputs  input name -> (B, N, H) last states of its slots, padding included
    """

    states: Tensor
    inputs: Mapping[str, Tensor]

    @property
    def first(self) -> Tensor:
        """(B, H) the state of the first slot, [CLS]."""
        return self.states[:, 0]


class Sequencer(nn.Module):
    """What `model` is to objectives, generators and probes: it lays out inputs and texts in rows, and encodes them.
    `mmgen.model.Model` adds the losses.

    generator  writes texts; a model whose steps only predict may have none (`has_generator`)
    embedders  by the names of their inputs
    """

    backbone: Backbone
    embedders: Any  # Mapping[str, Embedder]; torch declares the items as plain modules
    generator: Any
    objectives: Any
    sequence: SequenceConfig

    @property
    def has_generator(self) -> bool:
        return "generator" in self._modules

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the weights; mixed precision keeps them in float32."""
        return next(self.parameters()).dtype

    def objective(self, name: str) -> Any:
        """The objective of this name: "generator", or one of the recipe's objectives."""
        return self.generator if name == "generator" else self.objectives[name]

    def prefix(self, batch: Batch) -> Prefix:
        """The input X: `[CLS]`, the inputs in the batch's order, `[SEP]` between them -> P slots per row."""
        prompts = batch.label(PROMPT)
        room = (self.generator.max_tokens if self.has_generator else 0) + (0 if prompts is None else prompts.shape[-1])
        return self._lay_out_prefix(self._prefix_segments(batch), batch, room)

    def encode(self, batch: Batch) -> EncodedInputs:
        """Encode the prefixes: states (B, P, H), and the states of each input. No text follows, so the inputs may use
        all positions."""
        parts = self._prefix_segments(batch)
        states = self.backbone.encode(self._lay_out_prefix(parts, batch, room=0).slots).last
        segments = states.split_with_sizes([segment.mask.shape[1] for _, segment in parts], 1)
        return EncodedInputs(states, {name: part for (name, _), part in zip(parts, segments, strict=True) if name})

    def _prefix_segments(self, batch: Batch) -> list[Part]:
        """The segments of the prefix in order: the start token, the inputs with an end token between them, and an end
        token, as `[sequence]` says. Their states have one dtype."""
        start, end = (
            ("", self._special_token(token, batch.size)) for token in (self.backbone.start_id, self.backbone.end_id)
        )
        parts: list[Part] = []
        for name, collated in batch.inputs.items():
            parts += [end, (name, self._embed_input(name, collated))]
        parts = [start] * self.sequence.open + parts[1:] + [end] * self.sequence.close
        dtype = start[1].states.dtype  # the dtype of word embeddings; a projection may have half precision
        return [(name, replace(part, states=part.states.to(dtype))) for name, part in parts]

    def _lay_out_prefix(self, parts: Sequence[Part], batch: Batch, room: int) -> Prefix:
        """Lay out parts in rows, and add the terms of inputs to all slots. `room`: positions to reserve for the text.
        Raises DataError for rows that need more positions than the encoder has."""
        slots, free = lay_out(parts)
        limit = self.backbone.max_positions - room
        custom = any(part.positions is not None for _, part in parts)  # reading positions waits for the device
        if (custom or slots.positions.shape[1] > limit) and int(free.max()) > limit:
            advice = f", {room} of them reserved for the text; lower max_tokens, or use" if room else "; use"
            raise DataError(
                f"an example needs {int(free.max())} positions, but the encoder has {self.backbone.max_positions}"
                f"{advice} shorter inputs"
            )
        states, behind = slots.states, None
        for name, embedder in self.embedders.items():
            collated = batch.inputs.get(name)
            added, term = embedder.add(slots, collated, name), embedder.tail_term(slots, collated)
            states = states if added is None else states + added.to(states.dtype)
            if term is not None:
                behind = term.to(states.dtype) if behind is None else behind + term.to(states.dtype)
        return Prefix(slots if states is slots.states else replace(slots, states=states), free, behind)

    def _embed_input(self, name: str, collated: Mapping[str, Tensor]) -> Segment:
        segment: Segment = self.embedders[name](
            **{key: tensor.to(self.dtype) if tensor.is_floating_point() else tensor for key, tensor in collated.items()}
        )
        return segment

    def behind(self, prefix: Prefix, tail: Tail) -> Slots:
        """The slots of a tail (B, S), with positions that continue those of the prefix."""
        return self.written(prefix, tail.ids, tail.offsets, tail.layout)

    def rows(self, batch: Batch, tail: Tail) -> tuple[Slots, Tensor]:
        """Rows for training, prefix and tail, and the labels of their slots (B, L), -100 where nothing is predicted.
        Real slots come first, so that a row has padding only at its end, not after every input."""
        prefix = self.prefix(batch)
        unpacked = prefix.slots.followed_by(self.behind(prefix, tail))
        labels = torch.cat([torch.full_like(prefix.slots.positions, -100), tail.labels], 1)
        return packed(unpacked, labels)

    def written(self, prefix: Prefix, ids: Tensor, offsets: Tensor, layout: Layout) -> Slots:
        """Slots of tokens (B, S) behind a prefix; `offsets` count from the first free position."""
        states = self.backbone.embed(ids)
        if prefix.term is not None:
            states = states + prefix.term.unsqueeze(1)
        return Slots(states, prefix.free + offsets, torch.full_like(ids, self.sequence.target_token_type), layout)

    def _special_token(self, token: int, rows: int) -> Segment:
        ids = torch.full((rows, 1), token, device=self.device)
        return Segment(self.backbone.embed(ids), torch.ones_like(ids, dtype=torch.bool))


def lay_out(parts: Sequence[Part]) -> tuple[Slots, Tensor]:
    """Concatenate segments to rows (B, P); also returns the first free position (B, 1). Special slots have the token
    type of the preceding slot, 0 at the beginning."""
    segments = [segment for _, segment in parts]
    mask = torch.cat([segment.mask for segment in segments], 1)  # (B, P)
    positions, free = _lay_out_positions(segments, mask)
    types = _lay_out_types(parts, mask)
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


def _lay_out_types(parts: Sequence[Part], mask: Tensor) -> Tensor:
    """The token types (B, P); a special slot has that of the last real slot of an input before it."""
    columns = []
    for name, segment in parts:
        types = torch.full_like(segment.mask, 0 if name else -1, dtype=torch.long)
        columns.append(types if segment.types is None else segment.types.masked_fill(~segment.mask, 0))
    types = torch.cat(columns, 1)
    places = torch.arange(mask.shape[1], device=mask.device)
    last = (places * (mask & (types >= 0))).cummax(1).values
    return torch.where(types < 0, types.gather(1, last), types).clamp(min=0)


def _sources_and_indices(parts: Sequence[Part], names: Sequence[str]) -> tuple[Tensor, Tensor]:
    """`Slots.source` and `Slots.index`, (P,), the same in every row."""
    source, index = [], []
    for name, segment in parts:
        length, device = segment.mask.shape[1], segment.mask.device
        source.append(torch.full((length,), names.index(name) if name else -1, device=device))
        index.append(torch.arange(length, device=device) if name else source[-1])
    return torch.cat(source), torch.cat(index)
