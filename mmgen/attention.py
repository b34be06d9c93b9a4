"""The attention mask: which slot may see which, in training, decoding and probes; caches of keys and values.

The method is BERT-gen's (bertgen, section 3.2): the input X sees itself only; the token y_t sees X and y_1..y_t; the
[MASK] m_t that predicts y_t sees X, y_1..y_(t-1) and itself. Written over roles, groups and times, the rule lets every
m_t of every target of one example share a single pass and a single copy of X without changing any distribution. Texts
in blocks (Arriola et al., 2025) have one more clause: the tokens of a noisy block see one another.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .tensors import NOISY, PAD, PREFIX, WRITTEN, Layout, join, taken

MULTIPLES = {"cuda": 16}  # type of device -> sizes of what attention reads are multiples of this number there


def visible(queries: Layout, keys: Layout | None = None) -> Tensor:
    """(B, L, M) bool, True where a query may attend to a key.

    `keys` are the slots of a cache followed by the queries; by default the queries alone. Every slot sees itself, also
    padding, so that no row is fully masked (softmax over an empty set is NaN).
    """
    keys = queries if keys is None else keys
    role, group, time = (t.unsqueeze(-1) for t in (queries.role, queries.group, queries.time))  # (B, L, 1)
    key_role, key_group, key_time = (t.unsqueeze(-2) for t in (keys.role, keys.group, keys.time))  # (B, 1, M)
    earlier = (key_time < time) | ((key_time == time) & (role == WRITTEN))
    told = (key_role == WRITTEN) & (key_group == group) & earlier & (role != PREFIX)
    noisy = (key_role == NOISY) & (role == NOISY) & (key_group == group) & (key_time == time)
    seen = ((key_role == PREFIX) | told | noisy) & (role != PAD)
    length, span = queries.role.shape[1], keys.role.shape[1]
    itself = torch.ones(length, span, dtype=torch.bool, device=seen.device).tril(span - length).triu(span - length)
    return seen | itself


def prefix_layout(mask: Tensor) -> Layout:
    """The layout of an input's slots from their mask (B, P): only prefix and padding."""
    zeros = torch.zeros_like(mask, dtype=torch.long)
    return Layout(role=torch.where(mask, PREFIX, PAD), group=zeros, time=zeros)


def padded_length(count: int, device: torch.device) -> int:
    """The size to give to `count` slots or rows on a device. It is rounded up on a GPU, where libraries prepare for
    every new shape of attention, and copy masks that are not aligned; elsewhere it is `count`."""
    multiple = MULTIPLES.get(device.type, 1)
    return -(-count // multiple) * multiple


class Cache:
    """Keys and values of slots already encoded, with their layout. A backbone with a cache subclasses this class.

    This class stores the layout, so that the cached slots and their attention mask stay consistent. A subclass applies
    every `_change` to its keys and values too; it may override single methods with faster ones.
    """

    def __init__(self) -> None:
        self.layout: Layout | None = None

    def grow(self, layout: Layout) -> Layout:
        """Add slots to the cache; returns the layout of all cached slots."""
        self.layout = layout if self.layout is None else join(self.layout, layout)
        return self.layout

    def __len__(self) -> int:
        return 0 if self.layout is None else self.layout.role.shape[1]

    def forget(self, slots: int) -> None:
        """Drop the last `slots` slots of every row."""
        self._change(lambda t: t[:, :-slots])

    def repeat(self, times: int) -> None:
        """Every row `times` times in a row."""
        self._change(lambda t: t.repeat_interleave(times, 0))

    def select(self, rows: Tensor) -> None:
        """Keep these rows, in this order; a row may come more than once."""
        self._change(lambda t: t.index_select(0, rows))

    def rearrange(self, slots: Tensor) -> None:
        """Replace the last m slots of every row by copies of those with the indices `slots` (B, m), counted from the
        first of the m. The layout does not change: only the content of the slots does, not the attention mask."""
        layout, first = self.layout, len(self) - slots.shape[1]
        self._change(lambda t: torch.cat([t[:, :first], taken(t[:, first:], slots)], 1))
        self.layout = layout

    def _change(self, change: Callable[[Tensor], Tensor]) -> None:
        """Apply `change`, a function of (B, M, ...) tensors, to everything in the cache."""
        layout = self.layout
        if layout is None:
            return
        self.layout = Layout(change(layout.role), change(layout.group), change(layout.time))
