"""Scores that are means over the examples that they are about, in percent; a column for every kind of example too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from mmgen.errors import DataError
from mmgen.tensors import Example, Scores

Column = Sequence[float | None]  # a value for every example; None where the score is not about it


def scores(columns: Mapping[str, Column], notes: Sequence[str] = ()) -> Scores:
    """Every column's mean."""
    return Scores(means(columns), columns, tuple(notes))


def means(columns: Mapping[str, Column], before: str = "") -> dict[str, float | None]:
    """Every column's mean under its name with `before` in front; None for a column about no example."""
    known = {name: [value for value in column if value is not None] for name, column in columns.items()}
    return {before + name: fmean(values) if values else None for name, values in known.items()}


def by_kind(column: Column, examples: Sequence[Example], fact: str) -> dict[str, Column]:
    """The column for every kind of example, as the fact of this name says it, in the order of the alphabet."""
    kinds = [example.facts.get(fact) for example in examples]
    return {
        name: [value if kind == name else None for value, kind in zip(column, kinds, strict=True)]
        for name in sorted({kind for kind in kinds if isinstance(kind, str)})
    }


def unknown(column: Column, what: str) -> tuple[str, ...]:
    """A note on the examples of a column that have nothing to be judged by."""
    missing = sum(value is None for value in column)
    return (f"{missing} of {len(column)} examples have no {what}, and are not scored",) if missing else ()


def told(value: object, key: str, example: Example) -> object:
    """What a prediction's value has under a key. Raises DataError."""
    if not isinstance(value, Mapping) or key not in value:
        raise DataError(f"example '{example.id}': the prediction must be {{\"{key}\": ...}}, and is {value!r:.60}")
    return value[key]
