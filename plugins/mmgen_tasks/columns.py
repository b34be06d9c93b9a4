"""Columns of the tasks' metrics: means over examples, in percent; one per kind of example; values of predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from mmgen_vision.configs import ScoringConfig
from pydantic import Field

from mmgen.errors import DataError
from mmgen.examples import Example, Prediction, Scores

Column = Sequence[float | None]  # a value per example; None for an example that the score leaves out


def scores(columns: Mapping[str, Column], notes: Sequence[str] = ()) -> Scores:
    """Every column's mean."""
    return Scores(means(columns), columns, tuple(notes))


def means(columns: Mapping[str, Column], before: str = "") -> dict[str, float | None]:
    """Every column's mean under its name, with `before` in front; None for a column without values."""
    known = {name: [value for value in column if value is not None] for name, column in columns.items()}
    return {before + name: fmean(values) if values else None for name, values in known.items()}


def by_kind(column: Column, examples: Sequence[Example], fact: str) -> dict[str, Column]:
    """A column for every kind of example, in alphabetical order. `fact`: the fact that names an example's kind."""
    kinds = [example.facts.get(fact) for example in examples]
    return {
        name: [value if kind == name else None for value, kind in zip(column, kinds, strict=True)]
        for name in sorted({kind for kind in kinds if isinstance(kind, str)})
    }


def unknown(column: Column, what: str) -> tuple[str, ...]:
    """A note on the examples of a column that cannot be scored. `what`: the label they lack."""
    missing = sum(value is None for value in column)
    return (f"{missing} of {len(column)} examples have no {what}, and are not scored",) if missing else ()


def prediction_value(value: object, key: str, example_id: str) -> object:
    """The value under a key of a prediction. Raises DataError."""
    if not isinstance(value, Mapping) or key not in value:
        raise DataError(f"example '{example_id}': the prediction must be {{\"{key}\": ...}}, not {value!r:.60}")
    return value[key]


class ByFacts(ScoringConfig):
    """A metric with a column for every kind of example."""

    by: tuple[str, ...] = Field(
        (),
        description='facts of examples, such as "form" of drawn data or "question_type" of VQA: every value of these '
        "facts has a column",
    )

    def by_facts(self, columns: Mapping[str, Column], examples: Sequence[Example]) -> dict[str, Column]:
        """Columns of the kinds of examples. `columns`: what stands before the kind -> the column."""
        return {
            f"{before}{kind}": values
            for before, column in columns.items()
            for fact in self.by
            for kind, values in by_kind(column, examples, fact).items()
        }


class Accuracy(ByFacts):
    """A metric of predictions that are right or wrong, in percent of the examples with its label."""

    def is_right(self, prediction: Prediction, example: Example) -> bool:
        """Whether a prediction is right. Raises DataError."""
        raise NotImplementedError

    def columns(self, right: Column, examples: Sequence[Example]) -> dict[str, Column]:
        """The columns, from the percentage (0 or 100; chance has others) of every example with the label."""
        return {"accuracy": right}

    def score(self, generations: Sequence[Prediction], examples: Sequence[Example]) -> Scores:
        (label,) = self.required_labels
        right = [
            100.0 * self.is_right(prediction, example) if example.labels.get(label) is not None else None
            for prediction, example in zip(generations, examples, strict=True)
        ]
        columns = self.columns(right, examples)
        apart = {
            "" if name == "accuracy" else f"{name} ": column
            for name, column in columns.items()
            if name not in ("consistency", "Q->AR")
        }
        return scores(columns | self.by_facts(apart, examples), unknown(right, f"label '{label}'"))
