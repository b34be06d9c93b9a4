"""VCR's accuracies: of answers, of rationales, and of both."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mmgen.errors import DataError
from mmgen.parts import Metric
from mmgen.tensors import Example, Prediction, Scores

from ..columns import Column, means, scores, told, unknown

ASKS = {"answer": "Q->A", "rationale": "QA->R"}
CHANCE = "chance: one of the choices at random"


class ChoiceAccuracyMetric(Metric):
    """In percent, of examples with `labels["choice"]`:

    Q->A    answers that are right: examples with `facts["asks"]` "answer"
    QA->R   rationales that are right, given the right answer: those with "rationale"
    Q->AR   items (`facts["item"]`) of which both are right, where both are asked
    """

    def score(self, generations: Sequence[Prediction], examples: Sequence[Example]) -> Scores:
        right = [
            100.0 * (_chosen(one, example) == example.labels["choice"]) if _judged(example) else None
            for one, example in zip(generations, examples, strict=True)
        ]
        return scores(_columns(right, examples), unknown(right, "label that says which choice is right"))

    def references(self, examples: Sequence[Example]) -> Scores:
        lucky = [100 / len(one.labels.get("choices", range(4))) if _judged(one) else None for one in examples]
        return Scores(means(_columns(lucky, examples), "chance_"), notes=(CHANCE,))


def _judged(example: Example) -> bool:
    """Whether it is known which choice is right. Rationales for a given answer that is wrong have no right one."""
    return example.labels.get("choice") is not None


def _chosen(one: Prediction, example: Example) -> int:
    chosen = told(one.value, "choice", example)
    if not isinstance(chosen, int) or isinstance(chosen, bool):
        raise DataError(f"example '{example.id}': the choice is {chosen!r:.60}; it is a whole number, from 0")
    return chosen


def _columns(right: Column, examples: Sequence[Example]) -> dict[str, Column]:
    """What an item reaches with both stands at the first of its examples."""
    columns: dict[str, Column] = {}
    for asks, name in ASKS.items():
        own = [
            value if example.facts.get("asks") == asks else None for value, example in zip(right, examples, strict=True)
        ]
        if any(example.facts.get("asks") == asks for example in examples):
            columns[name] = own
    items: dict[str, dict[str, int]] = {}
    for place, example in enumerate(examples):
        if right[place] is not None and example.facts.get("asks") in ASKS:
            items.setdefault(str(example.facts.get("item", example.id)), {})[example.facts["asks"]] = place
    if len(columns) == len(ASKS):
        both: list[float | None] = [None] * len(examples)
        for places in items.values():
            if len(places) == len(ASKS):
                both[min(places.values())] = 100 * prod((right[place] or 0.0) / 100 for place in places.values())
        columns["Q->AR"] = both
    return columns
