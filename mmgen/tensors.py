"""What passes between the parts: small frozen dataclasses, and the one legend of shape letters.

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

import torch
from torch import Tensor

Whole = TypeVar("Whole")
Rows = TypeVar("Rows", "Layout", "Slots")
PAD, PREFIX, WRITTEN, MASK = range(4)  # roles of a slot; who may look at whom follows from them (mmgen.attention)


@dataclass(frozen=True)
class All:
    """Several values of one input that are all shown, in this order (the two pictures of NLVR2)."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Example:
    """One example of a data set: keys and texts, never tensors.

    inputs   field name -> a key (of a feature store), a text, a tuple of alternatives of which one is drawn, or `All`
    targets  the texts to write; several for one example share its prefix
    facts    what is known beyond inputs and targets (a drawn scene's things); for metrics, probes and reports only
    labels   supervision that is no text: answers with weights, a choice, boxes; by the names that objectives ask for
    """

    id: str
    inputs: Mapping[str, Any]
    targets: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, Any] = field(default_factory=dict)

    def lacks(self, field: str) -> bool:
        """Whether it has no such input, or one without any alternative."""
        value = self.inputs.get(field)
        return isinstance(value, tuple | None) and not value

    def shown(self, field: str) -> tuple[Any, ...]:
        """The values of an input that are shown: one, or several of an `All`; none where it is not there."""
        value = self.inputs.get(field)
        return value.values if isinstance(value, All) else () if value is None else (value,)


@dataclass(frozen=True)
class ResolvedExample(Example):
    """An example in which one of each input's alternatives has been drawn (`mmgen.data.seeds.resolve`): what readers
    read.

    overrides  input name -> field -> value that the reader of this input reads in place of that in `inputs`. Queries
               alone have them: two inputs may read one field, and be given different values
    """

    overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def seen_by(self, name: str) -> ResolvedExample:
        """What the reader of the input `name` reads: of a data set's examples all readers see the same."""
        if name not in self.overrides:
            return self
        return replace(self, inputs={**self.inputs, **self.overrides[name]}, overrides={})


@dataclass(frozen=True)
class Hiding:
    """How an input is hidden from the model, which is to say what stood there (Devlin et al., 2019, section 3.1).

    rate         share of an input's parts that are to be predicted
    replace      of those, the share that a [MASK] (or its like) stands for, and the share that another part of the same
                 kind stands for; the rest is shown as it is
    whole_words  all pieces of a word, or none
    """

    rate: float = 0.15
    replace: tuple[float, float] = (0.8, 0.1)
    whole_words: bool = False


@dataclass(frozen=True)
class Segment:
    """One input, embedded. What it says of padded slots is not read.

    types      token types, whole numbers; by default 0
    positions  counted from the segment's first; several slots may share one. -1 - k: the backbone's extra row k, which
               uses up none. By default every real slot has the next. What follows goes on after those used
    """

    states: Tensor  # (B, N, E)
    mask: Tensor  # (B, N) bool, True where a slot is real
    types: Tensor | None = None  # (B, N)
    positions: Tensor | None = None  # (B, N)


@dataclass(frozen=True)
class Layout:
    """Three small integers a slot, from which `mmgen.attention.visible` tells who may look at whom."""

    role: Tensor  # (B, L) PAD, PREFIX, WRITTEN or MASK
    group: Tensor  # (B, L) 0 for the prefix, k for the k-th target
    time: Tensor  # (B, L) 0 for the prefix, t for the t-th token of a target and for the mask that predicts it

    @property
    def real(self) -> Tensor:
        """(B, L) bool: slots that are not padding."""
        return self.role != PAD


@dataclass(frozen=True)
class Tail:
    """Target slots as a generator lays them out behind the prefix; made on the CPU, in loader workers."""

    ids: Tensor  # (B, S) tokens to embed, [MASK] among them
    offsets: Tensor  # (B, S) position, counted from the first after the prefix
    layout: Layout  # (B, S)
    labels: Tensor  # (B, S) the token to predict at a slot, -100 where nothing is predicted


@dataclass(frozen=True)
class Slots:
    """Whole rows, the one input of a backbone.

    inputs  names of the inputs whose slots they are. A model's rows have them, rows made by hand need not
    source  of which of the inputs a slot is, by its place among their names; -1 for special and written slots
    index   which of its input's N slots it is, padded ones counted too; -1 for special and written slots
    """

    states: Tensor  # (B, L, E)
    positions: Tensor  # (B, L) counted from 0, a backbone adds its own offset; -1 - k is the backbone's extra row k
    types: Tensor  # (B, L) token types
    layout: Layout  # (B, L)
    inputs: tuple[str, ...] = ()
    source: Tensor | None = None  # (B, L)
    index: Tensor | None = None  # (B, L)

    @property
    def counts(self) -> Tensor:
        """(2,) how many slots are real, and how many there are."""
        real = self.layout.real
        return torch.stack([real.sum(), real.new_full((), real.numel(), dtype=torch.int64)])

    def of(self, name: str) -> Tensor:
        """(B, L) bool: the real slots of an input, in the order of `index`; none where the rows do not have it."""
        if name not in self.inputs or self.source is None:
            return torch.zeros_like(self.layout.real)
        return (self.source == self.inputs.index(name)) & self.layout.real

    def followed_by(self, other: Slots) -> Slots:
        return join(self._traced(), other._traced())

    def _traced(self) -> Slots:
        nowhere = torch.full_like(self.positions, -1)
        return self if self.source is not None else replace(self, source=nowhere, index=nowhere)


@dataclass(frozen=True)
class Encoded:
    """What a backbone gives back; `hidden` and `attentions` only when asked for through `output`."""

    last: Tensor  # (B, L, H)
    hidden: tuple[Tensor, ...] = ()  # one (B, L, H) a layer, the embeddings first
    attentions: tuple[Tensor, ...] = ()  # one (B, heads, L, M) a layer


@dataclass(frozen=True)
class Targets:
    """What one objective has to predict in a batch; made in loader workers.

    counts  name of a loss -> over how many things it is a sum (tokens, examples); numbers and no tensors, since they
            are added up over a whole update before its first pass
    labels  name -> what is to be predicted, for objectives that do not write
    tail    the slots behind the prefix, for an objective that writes
    """

    counts: Mapping[str, float]
    labels: Mapping[str, Tensor] = field(default_factory=dict)
    tail: Tail | None = None


@dataclass(frozen=True)
class Batch:
    """What loader workers make of examples: inputs collated by their readers, targets by the objectives' readers."""

    ids: tuple[str, ...]  # of the examples
    inputs: Mapping[str, Mapping[str, Tensor]]  # input name -> what its reader collated; in the step's order
    targets: Mapping[str, Targets] = field(default_factory=dict)  # objective name -> what it has to predict
    rows: tuple[int, ...] = ()  # of every row its example's place among the ids; empty where each example is one row

    @property
    def size(self) -> int:
        """B, the number of rows."""
        return len(self.rows or self.ids)

    @property
    def tail(self) -> Tail | None:
        """The slots that are written; one objective at most writes."""
        return next((each.tail for each in self.targets.values() if each.tail is not None), None)

    @property
    def counts(self) -> dict[str, float]:
        """ "objective.loss" -> over how many things that loss is a sum."""
        return {f"{name}.{loss}": n for name, each in self.targets.items() for loss, n in each.counts.items()}

    def to(self, device: torch.device | str) -> Batch:
        return apply(self, lambda tensor: tensor.to(device, non_blocking=True))

    def pin_memory(self) -> Batch:
        return apply(self, lambda tensor: tensor.pin_memory())


@dataclass(frozen=True)
class Loss:
    """Sums of losses by name. Each is divided by its count over a whole update, so that an update may be split at will.

    sums     name of a loss -> its sum (); the sum over nothing is a 0
    slots    (2,) `Slots.counts` of the rows that were encoded, for who wants to know the padding
    counts   name -> over how many things the sum goes (`Batch.counts`); like `weights`, the model says it
    weights  name -> what the loss is multiplied with, where it is not 1
    """

    sums: Mapping[str, Tensor]
    slots: Tensor | None = None
    counts: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)

    @property
    def mean(self) -> Tensor:
        """() each loss over its own count, added up; with a gradient."""
        return self.over(self.counts)

    def over(self, counts: Mapping[str, float]) -> Tensor:
        """() each loss over the count of that name, added up. One with count 0, or with no sum here, is left out."""
        means = [self.sums[name] * (self.weights.get(name, 1) / counts[name]) for name in self.sums if counts.get(name)]
        return torch.stack(means).sum() if means else torch.zeros(())


@dataclass(frozen=True)
class Generation:
    """One text written for one example. `score`: mean log-probability of its tokens, the end included."""

    id: str
    text: str
    tokens: tuple[int, ...]
    score: float

    @property
    def value(self) -> str:
        return self.text


@dataclass(frozen=True)
class Prediction:
    """One answer for one example that is no text. `value` is JSON, by the kind of prediction:

    label   {"label": text, "probabilities": {text: share}}: the likeliest, and as many as the objective tells
    choice  {"choice": which, from 0, "probabilities": [a share for each choice]}
    region  {"box": [x0, y0, x1, y1] relative to the image's size, "index": which region}; of several also "picture"
    boxes   a list of such boxes, the likeliest first

    score   how sure: the probability of what is answered
    """

    id: str
    value: Any
    score: float


@dataclass(frozen=True)
class Scores:
    """What a metric says: values over all examples, and for every single one. `None` marks a value that cannot be had
    here; `notes` says why, or how the values were made. For an example, `None` says that the value is not about it."""

    values: Mapping[str, float | None]
    per_example: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def apply(value: Whole, change: Callable[[Tensor], Tensor]) -> Whole:
    """`value` with `change` made to every tensor inside it, in dataclasses and mappings alike."""
    changed: Any = value
    if isinstance(value, Tensor):
        changed = change(value)
    elif is_dataclass(value) and not isinstance(value, type):
        changed = replace(value, **{f.name: apply(getattr(value, f.name), change) for f in fields(value)})
    elif isinstance(value, Mapping):
        changed = {key: apply(inner, change) for key, inner in value.items()}
    return cast(Whole, changed)


def join(first: Rows, second: Rows) -> Rows:
    """Two dataclasses of (B, L, ...) tensors as one, the second's slots after the first's."""
    return replace(first, **{f.name: _joined(getattr(first, f.name), getattr(second, f.name)) for f in fields(first)})


def _joined(first: Any, second: Any) -> Any:
    if isinstance(first, Tensor):
        return torch.cat([first, second], 1)
    return join(first, second) if is_dataclass(first) else first or second  # names


def taken(values: Tensor, slots: Tensor) -> Tensor:
    """Of every row of (B, L) or (B, L, ...) the `slots` (B, n), in that order."""
    return values.gather(1, slots.view(*slots.shape, *[1] * (values.dim() - 2)).expand(*slots.shape, *values.shape[2:]))


def describe_value(value: object) -> str:
    """A value in a few words, for a message: of tensors their type and shape."""
    if isinstance(value, Loss):
        sums = value.sums
        if not isinstance(sums, Mapping):
            return f"a Loss of {describe_value(sums)}"
        return f"a Loss of {', '.join(f'{name!r}: {describe_value(total)}' for name, total in sums.items())}"
    if isinstance(value, Tensor):
        return f"a {value.dtype} tensor {tuple(value.shape)}".replace("torch.", "")
    return f"{value!r:.60}"
