"""Examples of data sets, and what is made of them: texts, other predictions, scores. No tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

ScoreKind = Literal["log-probability", "confidence"]
LOG_PROBABILITY: ScoreKind = "log-probability"
"""What the score of a text is by default; the other kind is "confidence" (0 to 1)."""


@dataclass(frozen=True)
class All:
    """Several values of one input, all shown in this order (the two pictures of NLVR2)."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
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

    def lacks(self, field: str) -> bool:
        """Whether the input is missing, or has no alternatives."""
        return self.inputs.get(field) in (None, ())

    def shown(self, field: str) -> tuple[Any, ...]:
        """The values of an input: one, or several for `All`; none if the input is missing."""
        value = self.inputs.get(field)
        return value.values if isinstance(value, All) else () if value is None else (value,)


@dataclass(frozen=True)
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

    def __post_init__(self) -> None:
        _check_score(self.id, self.score)

    @property
    def value(self) -> str:
        return self.text


@dataclass(frozen=True)
class Likelihood(Generation):
    """How probable a text is; `score` is the mean log-probability of its tokens, the end included.

    log_probabilities  of each token, the end last
    kind               "exact", or what they are, such as "of one drawn order" (`Generator.likelihood_kind`)
    pieces             each token as text, and its log-probability; an evaluation leaves them out
    words              likewise, each word of the text: the sum over its tokens
    """

    log_probabilities: tuple[float, ...] = ()
    kind: str = "exact"
    pieces: tuple[tuple[str, float], ...] = ()
    words: tuple[tuple[str, float], ...] = ()

    @property
    def log_probability(self) -> float:
        """The log-probability of the text."""
        return sum(self.log_probabilities)


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

    def __post_init__(self) -> None:
        _check_score(self.id, self.score)


def _check_score(id_: str, score: float) -> None:
    if not math.isfinite(score):
        cause = "; the weights of the model may be damaged: far too large weights give nan"
        raise ValueError(f"the score {score} for '{id_}' is not finite{cause * math.isnan(score)}")


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

    def __post_init__(self) -> None:
        if uneven := [name for name, rows in self.sums.items() if len({*map(len, rows)}) > 1]:
            raise ValueError(f"the rows of the sums '{uneven[0]}' differ in length")
