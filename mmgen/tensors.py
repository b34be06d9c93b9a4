"""What passes between parts as tensors: dataclasses from `Segment` to `Loss`; the shape letters.

B  examples in a batch        K  targets of one example         V  words in the vocabulary
N  slots of one input         P  slots of the whole prefix      S  slots of the tail (what is written)
L  slots of a whole row       M  slots a query may look at (those kept in a cache included)
E  width a backbone reads     H  width of its states            T  tokens of a target, its end included
R  regions of an image        D  width of a feature
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from .errors import PluginError

Value = TypeVar("Value")
Rows = TypeVar("Rows", "Layout", "Slots")
PAD, PREFIX, WRITTEN, MASK, NOISY = range(5)
"""Roles of a slot (`Layout.role`), from which `mmgen.attention.visible` computes who sees whom."""
Slot = tuple[float, ...]  # of a tail: id, offset, role, group, time, label; and perhaps the weight of its loss


@dataclass(frozen=True)
class Hiding:
    """How an input is masked; the model predicts the masked parts (Devlin et al., 2019, section 3.1).

    rate         share of an input's parts that are predicted
    replace      of those, the share replaced by [MASK] (or an equivalent), and the share replaced by another part of
                 the same kind; the rest is unchanged
    whole_words  mask all pieces of a word, or none
    """

    rate: float = 0.15
    replace: tuple[float, float] = (0.8, 0.1)
    whole_words: bool = False


@dataclass(frozen=True)
class Segment:
    """One embedded input. Values at padded slots are ignored.

    types      token types, integers; by default 0
    positions  counted from the first slot of the segment; slots may share a position. -1 - k: the backbone's extra row
               k, which uses no position. By default each real slot has the next position. The next segment continues
               after the last position used
    """

    states: Tensor  # (B, N, E)
    mask: Tensor  # (B, N) bool, True where a slot is real
    types: Tensor | None = None  # (B, N)
    positions: Tensor | None = None  # (B, N)

    def __post_init__(self) -> None:
        if self.states.ndim != 3:
            raise ValueError(f"states of a Segment must have shape (B, N, E), not {tuple(self.states.shape)}")
        shape = self.states.shape[:2]
        for name, dtype in (("mask", torch.bool), ("types", torch.long), ("positions", torch.long)):
            column: Tensor | None = getattr(self, name)
            if column is not None and (column.shape != shape or column.dtype != dtype):
                found = f"{column.dtype} {tuple(column.shape)}"
                raise ValueError(f"{name} of a Segment must be {dtype} of shape {tuple(shape)}, not {found}")


@dataclass(frozen=True)
class Layout:
    """Three small integers per slot, from which `mmgen.attention.visible` computes the attention mask.

    The tokens of a NOISY block, some of them [MASK]s, have one time: each sees the block, and what was written before
    that time. WRITTEN slots never see them.
    """

    role: Tensor  # (B, L) PAD, PREFIX, WRITTEN, MASK or NOISY
    group: Tensor  # (B, L) 0 for the prefix, k for the k-th target
    time: Tensor  # (B, L) 0 for the prefix, t for the t-th token of a target and for the mask that predicts it

    @property
    def real(self) -> Tensor:
        """(B, L) bool: slots that are not padding."""
        return self.role != PAD


@dataclass(frozen=True)
class Tail:
    """Target slots as a generator lays them out behind the prefix; created on the CPU, in loader workers."""

    ids: Tensor  # (B, S) tokens to embed, [MASK] among them
    offsets: Tensor  # (B, S) position, counted from the first after the prefix
    layout: Layout  # (B, S)
    labels: Tensor  # (B, S) the token to predict at a slot, -100 where nothing is predicted


def tail_of(rows: Sequence[Sequence[Slot]], pad_id: int) -> tuple[Tail, Tensor]:
    """The slots of B rows, padded to the longest, and the last column (B, S)."""
    longest, padding = max(map(len, rows)), (pad_id, 0, PAD, 0, 0, -100, 0.0)[: len(rows[0][0])]
    table = torch.from_numpy(np.array([[*row, *[padding] * (longest - len(row))] for row in rows]))
    ids, offsets, role, group, time, labels = table[..., :6].long().unbind(-1)
    return Tail(ids, offsets, Layout(role, group, time), labels), table[..., -1]


@dataclass(frozen=True)
class Slots:
    """Complete rows, the input of a backbone.

    inputs  names of the inputs of the slots. A model's rows have them; rows built by hand may leave them out
    source  the input of a slot, as an index into `inputs`; -1 for special and written slots
    index   the index of a slot among the N slots of its input, padding included; -1 for special and written slots
    """

    states: Tensor  # (B, L, E)
    positions: Tensor  # (B, L) counted from 0, a backbone adds its own offset; -1 - k is the backbone's extra row k
    types: Tensor  # (B, L) token types
    layout: Layout  # (B, L)
    inputs: tuple[str, ...] = ()
    source: Tensor | None = None  # (B, L)
    index: Tensor | None = None  # (B, L)

    def of(self, name: str) -> Tensor:
        """(B, L) bool: the real slots of an input, in the order of `index`; all False if the rows do not have the
        input."""
        if name not in self.inputs or self.source is None:
            return torch.zeros_like(self.layout.real)
        return (self.source == self.inputs.index(name)) & self.layout.real

    def followed_by(self, following: Slots) -> Slots:
        return join(self._with_origin(), following._with_origin())

    def _with_origin(self) -> Slots:
        nowhere = torch.full_like(self.positions, -1)
        return self if self.source is not None else replace(self, source=nowhere, index=nowhere)


@dataclass(frozen=True)
class Encoded:
    """The result of a backbone; `hidden` and `attentions` only if requested with `output`."""

    last: Tensor  # (B, L, H)
    hidden: tuple[Tensor, ...] = ()  # one (B, L, H) per layer, the embeddings first
    attentions: tuple[Tensor, ...] = ()  # one (B, heads, L, M) per layer


@dataclass(frozen=True)
class Targets:
    """The targets of one objective in a batch; created in loader workers.

    counts  name of a loss -> number of items in its sum (tokens, examples); numbers instead of tensors, since they are
            summed over an update before its first forward pass
    labels  name -> target tensor, for objectives that do not write
    tail    the slots behind the prefix, for an objective that writes
    texts   one entry per row, texts of its example that the objective reads: the references of a reward
    """

    counts: Mapping[str, float]
    labels: Mapping[str, Tensor] = field(default_factory=dict)
    tail: Tail | None = None
    texts: Sequence[Any] = ()


@dataclass(frozen=True)
class Batch:
    """A batch from loader workers: inputs collated by their readers, targets by the objectives' readers."""

    ids: tuple[str, ...]  # of the examples
    inputs: Mapping[str, Mapping[str, Tensor]]  # input name -> collated input, in the step's order
    targets: Mapping[str, Targets] = field(default_factory=dict)  # objective name -> its targets
    rows: tuple[int, ...] = ()  # for each row, the index of its example in `ids`; empty if each example is one row
    seeds: Tensor | None = None  # (B,) int64, of texts that are sampled (`mmgen.sampling`)

    @property
    def size(self) -> int:
        """B, the number of rows."""
        return len(self.rows or self.ids)

    @property
    def tail(self) -> Tail | None:
        """The tail of the objective that writes; at most one objective does."""
        return next((targets.tail for targets in self.targets.values() if targets.tail is not None), None)

    def label(self, name: str) -> Tensor | None:
        """The label tensor of this name of the first objective that has one."""
        return next((targets.labels[name] for targets in self.targets.values() if name in targets.labels), None)

    @property
    def counts(self) -> dict[str, float]:
        """ "objective.loss" -> number of items in the sum of that loss."""
        return {f"{name}.{loss}": n for name, targets in self.targets.items() for loss, n in targets.counts.items()}

    def to(self, device: torch.device | str) -> Batch:
        return apply(self, lambda tensor: tensor.to(device, non_blocking=True))

    def pin_memory(self) -> Batch:
        return apply(self, lambda tensor: tensor.pin_memory())


@dataclass(frozen=True)
class Loss:
    """Sums of losses by name. Each sum is divided by its count over a whole update, so that an update can be split
    freely.

    sums     name of a loss -> its sum (); an empty sum is 0
    counts   name -> number of items in the sum (`Batch.counts`); set by the model, like `weights`
    weights  name -> factor of the loss, if it is not 1
    """

    sums: Mapping[str, Tensor]
    counts: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if wrong := [name for name, total in self.sums.items() if not isinstance(total, Tensor) or total.ndim]:
            raise ValueError(
                f"the sum '{wrong[0]}' of a Loss must be a tensor of shape (): {self.sums[wrong[0]]!r:.60}"
            )

    @property
    def mean(self) -> Tensor:
        """() the sum of all losses, each divided by its count; with a gradient."""
        return self.over(self.counts)

    def over(self, counts: Mapping[str, float]) -> Tensor:
        """() the sum of all losses, each divided by the count of its name. A loss with count 0, or without a sum, is
        left out. Raises PluginError for a sum without a count."""
        if uncounted := [name for name in self.sums if name not in counts and name not in self.counts]:
            raise PluginError(f"the sum '{uncounted[0]}' of a Loss has no count; the reader's collate must count it")
        means = [self.sums[name] * (self.weights.get(name, 1) / counts[name]) for name in self.sums if counts.get(name)]
        return torch.stack(means).sum() if means else torch.zeros(())


def apply(value: Value, change: Callable[[Tensor], Tensor]) -> Value:
    """`value` with `change` applied to every tensor inside it, in dataclasses and mappings."""
    changed: Any = value
    if isinstance(value, Tensor):
        changed = change(value)
    elif is_dataclass(value) and not isinstance(value, type):
        changed = replace(value, **{f.name: apply(getattr(value, f.name), change) for f in fields(value)})
    elif isinstance(value, Mapping):
        changed = {key: apply(inner, change) for key, inner in value.items()}
    return cast(Value, changed)


def join(first: Rows, second: Rows) -> Rows:
    """Concatenate two dataclasses of (B, L, ...) tensors along their slots."""
    return replace(
        first, **{f.name: _join_values(getattr(first, f.name), getattr(second, f.name)) for f in fields(first)}
    )


def _join_values(first: Any, second: Any) -> Any:
    if isinstance(first, Tensor):
        return torch.cat([first, second], 1)
    return join(first, second) if is_dataclass(first) else first or second  # names


def taken(values: Tensor, slots: Tensor) -> Tensor:
    """The `slots` (B, n) of each row of (B, L) or (B, L, ...), in that order."""
    return values.gather(1, slots.view(*slots.shape, *[1] * (values.dim() - 2)).expand(*slots.shape, *values.shape[2:]))
