"""What passes between parts: dataclasses from `Example` to `Scores` (a batch's tail, a loss's mean); the shape letters.

B  examples in a batch        K  targets of one example         V  words in the vocabulary
N  slots of one input         P  slots of the whole prefix      S  slots of the tail (what is written)
L  slots of a whole row       M  slots a query may look at (those kept in a cache included)
E  width a backbone reads     H  width of its states            T  tokens of a target, its end included
R  regions of an image        D  width of a feature
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal, TypeVar, cast

import torch
from torch import Tensor

from .progress import html_table, number

Value = TypeVar("Value")
Rows = TypeVar("Rows", "Layout", "Slots")
ScoreKind = Literal["log-probability", "confidence"]
LOG_PROBABILITY: ScoreKind = "log-probability"
"""What the score of a text is by default; the other kind is "confidence" (0 to 1)."""
PAD, PREFIX, WRITTEN, MASK, NOISY = range(5)
"""Roles of a slot (`Layout.role`), from which `mmgen.attention.visible` computes who sees whom."""


@dataclass(frozen=True)
class All:
    """Several values of one input, all shown in this order (the two pictures of NLVR2)."""

    values: tuple[Any, ...]


def _as_text(value: object) -> str:
    """A value of an example in one line: alternatives are separated by " / ", values of `All` by " + "."""
    if isinstance(value, All):
        return " + ".join(map(_as_text, value.values))
    if isinstance(value, tuple | list) and all(isinstance(element, str) for element in value):
        return " / ".join(value)
    return str(value)


@dataclass(frozen=True, repr=False)
class Example:
    """One example of a data set: keys and texts, never tensors.

    inputs   field name -> a key (of a feature store), a text, a tuple of alternatives of which one is drawn, or `All`
    targets  the texts to generate; several targets of an example share its prefix
    facts    further knowledge (the objects of a drawn scene), only for metrics, probes and reports
    labels   supervision other than text: answers with weights, a choice, boxes; under the names that objectives read
    """

    id: str
    inputs: Mapping[str, Any]
    targets: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}: {value:.40}" for name, value in self.cells())
        return f"<{type(self).__name__} {self.id!r:.60}: {values:.200}>"

    def _repr_html_(self) -> str:
        """Inputs, texts and labels as a table for a notebook."""
        return html_table([["field", "value"], *self.cells()], caption=self.id)

    def cells(self) -> list[list[str]]:
        """Rows of a table: the names and values of inputs, targets and labels. Facts are left out."""
        values = {**self.inputs, **({"texts": self.targets} if self.targets else {}), **self.labels}
        return [[name, _as_text(value)] for name, value in values.items()]

    def lacks(self, field: str) -> bool:
        """Whether the input is missing, or has no alternatives."""
        value = self.inputs.get(field)
        return value is None or value == ()

    def shown(self, field: str) -> tuple[Any, ...]:
        """The values of an input: one, or several for `All`; none if the input is missing."""
        value = self.inputs.get(field)
        return value.values if isinstance(value, All) else () if value is None else (value,)


@dataclass(frozen=True, repr=False)
class ResolvedExample(Example):
    """An example in which one of each input's alternatives has been drawn (`mmgen.data.seeds.resolve`): what readers
    read.

    overrides  input name -> field -> value that the reader of this input reads in place of that in `inputs`. Queries
               have them, since two inputs may read one field and be given different values, and examples that a reader
               augments; others of a data set have none
    """

    overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def seen_by(self, name: str) -> ResolvedExample:
        """What the reader of the input `name` reads: of a data set's examples all readers see the same."""
        if name not in self.overrides:
            return self
        return replace(self, inputs={**self.inputs, **self.overrides[name]}, overrides={})


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

    @property
    def counts(self) -> Tensor:
        """(2,) how many slots are real, and how many there are."""
        real = self.layout.real
        return torch.stack([real.sum(), real.new_full((), real.numel(), dtype=torch.int64)])

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
    """

    counts: Mapping[str, float]
    labels: Mapping[str, Tensor] = field(default_factory=dict)
    tail: Tail | None = None


@dataclass(frozen=True)
class Batch:
    """A batch from loader workers: inputs collated by their readers, targets by the objectives' readers."""

    ids: tuple[str, ...]  # of the examples
    inputs: Mapping[str, Mapping[str, Tensor]]  # input name -> collated input, in the step's order
    targets: Mapping[str, Targets] = field(default_factory=dict)  # objective name -> its targets
    rows: tuple[int, ...] = ()  # for each row, the index of its example in `ids`; empty if each example is one row

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
    slots    (2,) `Slots.counts` of the encoded rows, from which the share of padding follows
    counts   name -> number of items in the sum (`Batch.counts`); set by the model, like `weights`
    weights  name -> factor of the loss, if it is not 1
    """

    sums: Mapping[str, Tensor]
    slots: Tensor | None = None
    counts: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)

    @property
    def mean(self) -> Tensor:
        """() the sum of all losses, each divided by its count; with a gradient."""
        return self.over(self.counts)

    def over(self, counts: Mapping[str, float]) -> Tensor:
        """() the sum of all losses, each divided by the count of its name. A loss with count 0, or without a sum, is
        left out."""
        means = [self.sums[name] * (self.weights.get(name, 1) / counts[name]) for name in self.sums if counts.get(name)]
        return torch.stack(means).sum() if means else torch.zeros(())


@dataclass(frozen=True)
class Generation:
    """One text generated for one example.

    score       mean log-probability of its tokens, the end included, or the generator's confidence, from 0 to 1
    score_kind  which of the two; `mmgen.objectives.Generator.score_kind` declares it, and the core writes it here
    passes      for a generator that does not write from left to right: the text after each pass, its open places as
                [MASK], for the report
    prompt      the prompt that the text was written for (`mmgen.prompts`); the core writes it here
    """

    id: str
    text: str
    tokens: tuple[int, ...]
    score: float
    score_kind: ScoreKind = LOG_PROBABILITY
    passes: tuple[str, ...] = ()
    prompt: str = ""

    def _repr_html_(self) -> str:
        return html_table([["text", self.score_kind], [self.text, f"{self.score:.2f}"]], caption=self.id)

    @property
    def value(self) -> str:
        return self.text


@dataclass(frozen=True)
class Prediction:
    """One prediction for one example, other than a text. `value` is JSON, by the kind of prediction:

    label   {"label": text, "probabilities": {text: share}}: the most probable labels, as many as the objective lists
    choice  {"choice": index, "probabilities": [the probability of each choice]}
    region  {"box": [x0, y0, x1, y1] relative to the image's size, "index": region}; of several pictures also "picture"
    boxes   a list of such boxes, the most probable first

    A plugin's own kind may have any JSON.

    score   confidence: the probability of the prediction
    """

    id: str
    value: Any
    score: float

    def _repr_html_(self) -> str:
        return html_table([["prediction", "score"], [f"{self.value!s:.200}", f"{self.score:.1%}"]], caption=self.id)


@dataclass(frozen=True)
class Scores:
    """The result of a metric: values over all examples, and for each example. `None` is a value that is not available;
    `notes` says why, or how the values were computed. For an example, `None` means that the value does not apply.

    `sums`: for scores that are functions of sums over examples (BLEU), the K numbers of every example, by a name of the
    metric's; `MetricConfig.of_sums` makes the scores of the sums, which gives them intervals. Scores of several metrics
    have the names "METRIC/name"."""

    values: Mapping[str, float | None]
    per_example: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    sums: Mapping[str, Sequence[Sequence[float]]] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        """The values as a table for a notebook."""
        return html_table(
            [["score", "value"], *([name, number(value)] for name, value in self.values.items())], self.notes
        )


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


def describe_value(value: object) -> str:
    """A short description of a value for a message; for tensors, dtype and shape."""
    if isinstance(value, Loss):
        sums = value.sums
        if not isinstance(sums, Mapping):
            return f"a Loss of {describe_value(sums)}"
        return f"a Loss of {', '.join(f'{name!r}: {describe_value(total)}' for name, total in sums.items())}"
    if isinstance(value, Tensor):
        return f"a {value.dtype} tensor {tuple(value.shape)}".replace("torch.", "")
    return f"{' '.join(repr(value).split()):.60}"  # an array's has lines
