"""The metric of NLVR2: accuracy, and consistency over the groups of a statement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

from mmgen_vision.truths import truth_of

from mmgen.examples import Example, Prediction, Scores
from mmgen.parts import Metric

from ..score_columns import Column, by_kind, prediction_value, scores, unknown

CHANCE = "chance: the expected score of a coin toss"


class PairAccuracyMetric(Metric):
    """In percent, of examples with `labels["truth"]`:

    accuracy     statements whose predicted truth is right
    consistency  groups (`facts["group"]`: one sentence about several pairs) whose predictions are all right; without
                 groups there is no such column
    both, ...    accuracy for every value of the facts `by`
    """

    def __init__(self, by: Sequence[str]) -> None:
        self.by = by

    def score(self, generations: Sequence[Prediction], examples: Sequence[Example]) -> Scores:
        right = [
            100.0
            * (truth_of(prediction_value(prediction.value, "label", example)) == truth_of(example.labels["truth"]))
            if "truth" in example.labels
            else None
            for prediction, example in zip(generations, examples, strict=True)
        ]
        columns = _score_columns(right, examples)
        for fact in self.by:
            columns |= by_kind(right, examples, fact)
        return scores(columns, unknown(right, "label that says what is true"))

    def references(self, examples: Sequence[Example]) -> Scores | None:
        groups = _places_by_group([example for example in examples if "truth" in example.labels])
        if not groups:
            return None
        values = {"chance_accuracy": 50.0}
        if _has_groups(examples):
            values["chance_consistency"] = 100 * fmean(0.5 ** len(places) for places in groups.values())
        return Scores(values, notes=(CHANCE,))


def _score_columns(right: Column, examples: Sequence[Example]) -> dict[str, Column]:
    """The columns of the metric. The first example of a group has the group's consistency."""
    if not _has_groups(examples):
        return {"accuracy": right}
    consistency: list[float | None] = [None] * len(examples)
    for places in _places_by_group(examples).values():
        known = [value for place in places if (value := right[place]) is not None]
        if known:
            consistency[places[0]] = min(known)
    return {"accuracy": right, "consistency": consistency}


def _has_groups(examples: Sequence[Example]) -> bool:
    return any("group" in example.facts for example in examples)


def _places_by_group(examples: Sequence[Example]) -> dict[str, list[int]]:
    """The positions of the examples of every group; an example without a group is a group by itself."""
    groups: dict[str, list[int]] = defaultdict(list)
    for place, example in enumerate(examples):
        groups[str(example.facts.get("group", example.id))].append(place)
    return groups
