"""NLVR2's accuracy and consistency, as the official script counts."""

from dataclasses import replace

import pytest
from kit.judged import STATEMENTS, Judges, predictions_of
from mmgen_tasks import PairAccuracy

from mmgen.tensors import Example


class TestPairAccuracy(Judges):
    scored_examples = STATEMENTS

    def config(self):
        return PairAccuracy()

    def value(self, n, example):
        return {"label": "True", "probabilities": {"True": 0.7, "False": 0.3}}


def test_pairs_and_their_consistency():
    """As the official script counts: a sentence is consistent where none of its pairs is wrong."""
    predicted = ["True", "False", "true", "True", "False", "True", "False"]
    scores = (
        PairAccuracy().build().score(predictions_of([{"label": label} for label in predicted], STATEMENTS), STATEMENTS)
    )
    right, consistent = 0, {}
    for label, example in zip(predicted, STATEMENTS, strict=True):
        _, set_, _, sentence = example.id.split("-")
        hit = label.lower() == str(example.labels["truth"]).lower()
        right += hit
        consistent[set_, sentence] = consistent.get((set_, sentence), True) and hit
    assert scores.values["accuracy"] == pytest.approx(100 * right / 7) == pytest.approx(100 * 6 / 7)
    assert scores.values["consistency"] == pytest.approx(100 * sum(consistent.values()) / 3) == pytest.approx(200 / 3)
    assert scores.per_example["consistency"] == [100, None, 0, None, None, None, 100]


def test_columns_by_a_fact():
    examples = [replace(e, facts={**e.facts, "form": "both" if n < 2 else "one"}) for n, e in enumerate(STATEMENTS)]
    predicted = predictions_of([{"label": "True"}] * 7, examples)
    scores = PairAccuracy(by=["form"]).build().score(predicted, examples)
    assert scores.values["both"] == 50 and scores.values["one"] == pytest.approx(40)
    assert [*PairAccuracy().build().score(predicted, examples).values] == ["accuracy", "consistency"]


def test_chance():
    scores = PairAccuracy().build().references(STATEMENTS)
    assert scores.values == {
        "chance_accuracy": 50,
        "chance_consistency": pytest.approx(100 * (1 / 4 + 1 / 16 + 1 / 2) / 3),
    }
    assert PairAccuracy().build().references([Example("x", {})]) is None


def test_statements_without_groups_have_no_consistency():
    """Such as those of a table: it would repeat the accuracy."""
    examples = [Example(str(n), {}, labels={"truth": True}) for n in range(2)]
    metric = PairAccuracy().build()
    scores = metric.score(predictions_of([{"label": "True"}, {"label": "False"}], examples), examples)
    assert scores.values == {"accuracy": 50} and metric.references(examples).values == {"chance_accuracy": 50}
