"""NLVR2's accuracy and consistency."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

from mmgen.parts import Metric
from mmgen.tensors import Example, Prediction, Scores

from ..columns import Column, scores, told, unknown

CHANCE = "chance: what a coin is expected to reach"


class PairAccuracyMetric(Metric):
    """In percent, of examples with `labels["truth"]`:

    accuracy     statements of which it is rightly said whether they are true
    consistency  groups (`facts["group"]`: one sentence about several pairs of pictures) in which every one is right
    """

    def score(self, generations: Sequence[Prediction], examples: Sequence[Example]) -> Scores:
        right = [
            100.0 * (str(told(one.value, "label", example)).lower() == str(example.labels["truth"]).lower())
            if "truth" in example.labels
            else None
            for one, example in zip(generations, examples, strict=True)
        ]
        return scores(_columns(right, examples), unknown(right, "label that says what is true"))

    def references(self, examples: Sequence[Example]) -> Scores | None:
        groups = _groups([example for example in examples if "truth" in example.labels])
        if not groups:
            return None
        whole = 100 * fmean(0.5 ** len(places) for places in groups.values())
        return Scores({"chance_accuracy": 50.0, "chance_consistency": whole}, notes=(CHANCE,))


def _columns(right: Column, examples: Sequence[Example]) -> dict[str, Column]:
    """A group's consistency stands at its first example."""
    whole: list[float | None] = [None] * len(examples)
    for places in _groups(examples).values():
        known = [value for place in places if (value := right[place]) is not None]
        if known:
            whole[places[0]] = min(known)
    return {"accuracy": right, "consistency": whole}


def _groups(examples: Sequence[Example]) -> dict[str, list[int]]:
    """The places of the examples of every group; one without is a group of its own."""
    found: dict[str, list[int]] = defaultdict(list)
    for place, example in enumerate(examples):
        found[str(example.facts.get("group", example.id))].append(place)
    return found
