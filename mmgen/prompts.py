"""Prompts: texts before targets, their slots in a row, and the texts of prompts.

A prompt is a text before a target that only this target sees, such as the answer that a question is to have. An example
has prompts as the label "prompt", a query under the same name. A prompt is part of its target's group, so that all
targets of an example still share one prefix: its slots are WRITTEN at time 0. By `mmgen.attention.visible`, they see
the prefix and one another, and every token of their target sees them; nothing else does. Without prompts, rows are as
they would be without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from .configs import PROMPT
from .errors import DataError
from .examples import Example, Generation
from .tensors import PAD, WRITTEN, Batch, Layout, Tail, join

PROMPT_COUNTS = "prompt_counts"  # the label of `Targets` with the number of prompts of each example


def prompts_of(example: Example) -> tuple[str, ...]:
    """The prompts of an example, one per target; of a query, one per text that is to be written. Empty if it has none.
    Raises DataError."""
    value = example.labels.get(PROMPT, ())
    prompts = [value] * max(1, len(example.targets)) if isinstance(value, str) else value
    if not isinstance(prompts, tuple | list) or not all(isinstance(text, str) for text in prompts):
        raise DataError(f"example '{example.id}': '{PROMPT}' must be a string or a list of strings, not {value!r:.60}")
    if prompts and example.targets and len(prompts) != len(example.targets):
        raise DataError(
            f"example '{example.id}' has {len(prompts)} prompts for {len(example.targets)} targets; give one per target"
        )
    return tuple(prompts)


def padded(prompts: Sequence[Sequence[Sequence[int]]]) -> Tensor:
    """The tokens of B examples' prompts as (B, K, C), -1 after a prompt and for examples with fewer than K."""
    most = max(map(len, prompts))
    rows = [torch.tensor(tokens, dtype=torch.long) for row in prompts for tokens in [*row, *[()] * (most - len(row))]]
    filled = pad_sequence(rows, True, -1)
    return filled.view(len(prompts), most, filled.shape[1])


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
        ids, counts = batch.label(PROMPT), batch.label(PROMPT_COUNTS)
        return None if ids is None or counts is None else cls(ids, counts)

    @property
    def most(self) -> int:
        """K, the most prompts of an example."""
        return self.ids.shape[1]

    def for_texts(self, texts: int) -> Tensor:
        """(B, K n, C) the prompt of each text, for `texts` = n texts per prompt."""
        return self.ids.repeat_interleave(texts // self.most, 1)
