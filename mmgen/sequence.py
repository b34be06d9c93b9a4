"""Rows of a model: segments of inputs in order, with positions and token types; the prefix behind which texts are
written; prompts between the prefix and a text; character offsets of tokens; and checks of the results of embedders.

A prompt is a text before a target that only this target sees, such as the answer that a question is to have. An example
has prompts as the label "prompt", a query under the same name. A prompt is part of its target's group, so that all
targets of an example still share one prefix: its slots are WRITTEN at time 0. By `mmgen.attention.visible`, they see
the prefix and one another, and every token of their target sees them; nothing else does. Without prompts, rows are as
they would be without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from .attention import prefix_layout
from .configs import PROMPT
from .errors import DataError
from .tensors import (
    PAD,
    WRITTEN,
    Batch,
    Example,
    Generation,
    Layout,
    Segment,
    Slots,
    Tail,
    apply,
    describe_value,
    join,
    taken,
)

if TYPE_CHECKING:
    from .parts import Backbone, Embedder

AVOID = "avoid"  # the label of queries with texts to stay away from
PROMPT_COUNTS = "prompt_counts"  # the label of `Targets` with the number of prompts of each example

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


def letters(tokenizer: Any, text: str) -> list[tuple[int, int]]:
    """The offsets (first character, last + 1) of each token in a text. Only fast tokenizers provide them."""
    encoding = tokenizer(text, add_special_tokens=False, verbose=False, return_offsets_mapping=True)
    return cast("list[tuple[int, int]]", encoding["offset_mapping"])


def slots_between(spans: Sequence[Sequence[int]], first: int, end: int) -> tuple[int, ...]:
    """The slots that overlap the characters `first` to `end` of a text, given the spans of all slots."""
    return tuple(slot for slot, (start, stop) in enumerate(spans) if start < end and stop > first)


def prompts_of(example: Example) -> tuple[str, ...]:
    """The prompts of an example, one per target; of a query, one per text that is to be written. Empty if it has none.
    Raises DataError."""
    value = example.labels.get(PROMPT)
    if value is None:
        return ()
    prompts = (value,) * max(1, len(example.targets)) if isinstance(value, str) else value
    if not isinstance(prompts, tuple | list) or not prompts or not all(isinstance(text, str) for text in prompts):
        raise DataError(f"example '{example.id}': 'prompt' must be a string or a list of strings, not {value!r:.60}")
    if example.targets and len(prompts) != len(example.targets):
        raise DataError(
            f"example '{example.id}' has {len(prompts)} prompts for {len(example.targets)} targets; give one per target"
        )
    return tuple(prompts)


def texts_to_avoid(example: Example) -> list[str]:
    """The texts that the texts of an example are to be different from. Raises DataError."""
    value = example.labels.get(AVOID, [])
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, tuple | list) or not all(isinstance(text, str) for text in texts):
        raise DataError(f"example '{example.id}': 'avoid' must be a string or a list of strings, not {value!r:.60}")
    return list(texts)


def with_prompts_parted(example: Example, halves: Sequence[Example]) -> list[Example]:
    """The halves of an example, each with the prompts of its own targets."""
    prompts, parted = prompts_of(example), []
    for half in halves:
        labels = {**half.labels, PROMPT: prompts[: len(half.targets)]} if prompts else half.labels
        parted.append(replace(half, labels=labels))
        prompts = prompts[len(half.targets) :]
    return parted


def one_per_prompt(examples: Iterable[Example]) -> Iterator[Example]:
    """Examples of one prompt each, as a split that is scored needs them, with the prompt's kind and value as facts."""
    for example in examples:
        prompts = prompts_of(example)
        for number, prompt in enumerate(dict.fromkeys(prompts), 1):
            targets = tuple(text for text, its in zip(example.targets, prompts, strict=True) if its == prompt)
            kind, _, value = prompt.partition(": ") if ": " in prompt else ("", "", prompt)
            facts = {**example.facts, "prompt_kind": kind, "prompt_value": value}
            labels = {**example.labels, PROMPT: (prompt,) * len(targets)}
            yield replace(example, id=f"{example.id}:{number}", targets=targets, facts=facts, labels=labels)


def padded(prompts: Sequence[Sequence[Sequence[int]]]) -> Tensor:
    """The tokens of B examples' prompts as (B, K, C), -1 after a prompt and for examples with fewer than K."""
    most = max(map(len, prompts))
    longest = max((len(tokens) for row in prompts for tokens in row), default=0)
    rows = [[*row, *[()] * (most - len(row))] for row in prompts]
    filled = [[[*tokens, *[-1] * (longest - len(tokens))] for tokens in row] for row in rows]
    return torch.tensor(filled, dtype=torch.long).view(len(rows), most, longest)


def prompt_slots(ids: Tensor, pad_id: int) -> tuple[Tensor, Tensor, Layout]:
    """The slots of prompts (B, K, C), one group each: ids, offsets and layout (B, K C)."""
    rows, count, longest = ids.shape
    real = ids.flatten(1) >= 0
    group = torch.arange(1, count + 1, device=ids.device).repeat_interleave(longest).expand(rows, -1)
    offsets = torch.arange(longest, device=ids.device).repeat(count).expand(rows, -1)
    layout = Layout(torch.where(real, WRITTEN, PAD), group, torch.zeros_like(offsets))
    return torch.where(real, ids.flatten(1), pad_id), offsets, layout


def behind_prompts(tail: Tail, ids: Tensor, pad_id: int) -> Tail:
    """The targets (B, S) of a tail, each behind its prompt of `ids` (B, K, C), whose positions they continue."""
    lengths = F.pad((ids >= 0).sum(-1), (1, 0))  # (B, 1 + K), of group 0 nothing
    moved = tail.offsets + lengths.gather(1, tail.layout.group)
    slots, offsets, layout = prompt_slots(ids, pad_id)
    first = Tail(slots, offsets, layout, torch.full_like(slots, -100))
    joined: Tail = join(first, replace(tail, offsets=moved))  # type: ignore[type-var]
    return joined


def with_prompts(texts: Sequence[Generation], example: Example) -> list[Generation]:
    """The texts of an example with their prompts; as they are if it has none."""
    prompts = list(dict.fromkeys(prompts_of(example)))
    per_prompt = len(texts) // max(1, len(prompts))
    return [replace(text, prompt=prompts[i // per_prompt]) for i, text in enumerate(texts)] if prompts else list(texts)


@dataclass(frozen=True)
class Prompts:
    """The prompts of a batch whose texts are to be written.

    ids     (B, K, C) tokens, -1 after a prompt; an example with fewer than K prompts has empty ones behind them
    counts  (B,) how many prompts an example has
    """

    ids: Tensor
    counts: Tensor

    @classmethod
    def of(cls, batch: Batch) -> Prompts | None:
        """The prompts of a batch; None if no example has one."""
        ids, counts = prompts_in(batch), batch.label(PROMPT_COUNTS)
        return None if ids is None or counts is None else cls(ids, counts)

    @property
    def most(self) -> int:
        """K, the most prompts of an example."""
        return self.ids.shape[1]

    def for_texts(self, texts: int) -> Tensor:
        """(B, K n, C) the prompt of each text, for `texts` = n texts per prompt."""
        return self.ids.repeat_interleave(texts // self.most, 1)


def prompts_in(batch: Batch) -> Tensor | None:
    """(B, K, C) the prompts of a batch, in training and in writing; None if no example has one."""
    return batch.label(PROMPT)


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
