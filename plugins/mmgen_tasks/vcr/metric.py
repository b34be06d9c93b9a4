"""The metric of VCR: accuracies of answers, of rationales, and of both."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mmgen.errors import DataError
from mmgen.examples import Example, Prediction, Scores
from mmgen.parts import Metric

from ..score_columns import Column, by_kind, means, prediction_value, scores, unknown

SUBTASKS = {"answer": "Q->A", "rationale": "QA->R"}
CHANCE = "chance: one of the choices at random"


class ChoiceAccuracyMetric(Metric):
    """In percent, of examples with `labels["choice"]`:

    Q->A    answers that are right: examples with `facts["asks"]` "answer"
    QA->R   rationales that are right, given the right answer: examples with "rationale"
    Q->AR   items (`facts["item"]`) whose answer and rationale are both right, where examples have both
    accuracy  choices that are right: examples without `facts["asks"]`, such as those of a table

    and "Q->A VALUE" and "QA->R VALUE" for every value of the facts `by`.
    """

    def __init__(self, by: Sequence[str]) -> None:
        self.by = by

    def score(self, generations: Sequence[Prediction], examples: Sequence[Example]) -> Scores:
        right = [
            100.0 * (_predicted_choice(prediction, example) == example.labels["choice"])
            if _has_right_choice(example)
            else None
            for prediction, example in zip(generations, examples, strict=True)
        ]
        columns = _score_columns(right, examples)
        for name in [name for name in columns if name != "Q->AR"]:
            for fact in self.by:
                parts = by_kind(columns[name], examples, fact)
                columns |= {f"{name} {value}": column for value, column in parts.items()}
        return scores(columns, unknown(right, "label that says which choice is right"))

    def references(self, examples: Sequence[Example]) -> Scores:
        chances = [
            100 / len(example.labels.get("choices", range(4))) if _has_right_choice(example) else None
            for example in examples
        ]
        return Scores(means(_score_columns(chances, examples), "chance_"), notes=(CHANCE,))


def _has_right_choice(example: Example) -> bool:
    """Whether the right choice is known. Rationales for a given wrong answer have no right choice."""
    return example.labels.get("choice") is not None


def _predicted_choice(prediction: Prediction, example: Example) -> int:
    choice = prediction_value(prediction.value, "choice", example)
    if not isinstance(choice, int) or isinstance(choice, bool):
        raise DataError(f"example '{example.id}': the choice must be a non-negative integer, not {choice!r:.60}")
    return choice


def _score_columns(right: Column, examples: Sequence[Example]) -> dict[str, Column]:
    """The columns of the metric. The first example of an item has the item's Q->AR."""
    columns: dict[str, Column] = {}
    for subtask, name in SUBTASKS.items():
        column = [
            value if example.facts.get("asks") == subtask else None
            for value, example in zip(right, examples, strict=True)
        ]
        if any(example.facts.get("asks") == subtask for example in examples):
            columns[name] = column
    items: dict[str, dict[str, int]] = {}
    for place, example in enumerate(examples):
        if right[place] is not None and example.facts.get("asks") in SUBTASKS:
            items.setdefault(str(example.facts.get("item", example.id)), {})[example.facts["asks"]] = place
    if len(columns) == len(SUBTASKS):
        both: list[float | None] = [None] * len(examples)
        for places in items.values():
            if len(places) == len(SUBTASKS):
                both[min(places.values())] = 100 * prod((right[place] or 0.0) / 100 for place in places.values())
        columns["Q->AR"] = both
    if any(example.facts.get("asks") not in SUBTASKS for example in examples):
        columns["accuracy"] = [
            None if example.facts.get("asks") in SUBTASKS else value
            for value, example in zip(right, examples, strict=True)
        ]
    return columns
