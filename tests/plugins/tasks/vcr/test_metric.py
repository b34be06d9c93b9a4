"""VCR's accuracies: of answers, of rationales, and of both."""

from dataclasses import replace

import pytest
from kit.judged import ITEMS, Judges, predictions_of
from mmgen_tasks import ChoiceAccuracy

from mmgen.tensors import Example


class TestChoiceAccuracy(Judges):
    scored_examples = [
        *ITEMS,
        *(
            Example(f"v-{item}-rationale-{k}", {}, facts={"asks": "rationale", "item": f"v-{item}"})
            for item in range(3)
            for k in range(4)
        ),
    ]

    def config(self):
        return ChoiceAccuracy()

    def value(self, n, example):
        item = int(example.facts["item"][-1])  # the same for all its rationales, whatever answer is given
        place = item if example.facts["asks"] == "answer" else item + 1
        return {"choice": place, "probabilities": [0.4 if k == place else 0.2 for k in range(4)]}


def test_answers_rationales_and_both():
    choices = [0, 1, 2, 0, 0, 0]  # both right; only the answer right; only the rationale right
    scores = ChoiceAccuracy().build().score(predictions_of([{"choice": choice} for choice in choices], ITEMS), ITEMS)
    assert scores.values == {
        "Q->A": pytest.approx(200 / 3),
        "QA->R": pytest.approx(200 / 3),
        "Q->AR": pytest.approx(100 / 3),
    }
    assert scores.per_example["Q->AR"] == [100, None, 0, None, 0, None]
    assert ChoiceAccuracy().build().references(ITEMS).values == {
        "chance_Q->A": 25,
        "chance_QA->R": 25,
        "chance_Q->AR": 6.25,
    }


def test_columns_by_a_fact():
    forms = ["color", "side", "color"]
    examples = [
        replace(example, facts={**example.facts, "form": forms[number // 2]}) for number, example in enumerate(ITEMS)
    ]
    choices = [0, 1, 2, 0, 0, 0]
    scores = (
        ChoiceAccuracy(by=["form"]).build().score(predictions_of([{"choice": c} for c in choices], examples), examples)
    )
    assert {name: value for name, value in scores.values.items() if " " in name} == {
        "Q->A color": 50,
        "Q->A side": 100,
        "QA->R color": 100,
        "QA->R side": 0,
    }
    plain = ChoiceAccuracy().build().score(predictions_of([{"choice": c} for c in choices], examples), examples)
    assert [*plain.values] == ["Q->A", "QA->R", "Q->AR"]


def test_answers_alone_have_no_columns_of_rationales():
    answers = ITEMS[::2]
    metric = ChoiceAccuracy().build()
    assert [*metric.score(predictions_of([{"choice": 0}] * 3, answers), answers).values] == ["Q->A"]
    assert metric.references(answers).values == {"chance_Q->A": 25}


def test_rationales_of_wrong_answers_are_not_scored():
    rationale = Example(
        "v-0-rationale-2", {}, facts={"asks": "rationale", "item": "v-0"}, labels={"choices": ("a",) * 4}
    )
    examples = [*ITEMS[:2], rationale]
    scores = (
        ChoiceAccuracy()
        .build()
        .score(predictions_of([{"choice": 0}, {"choice": 1}, {"choice": 3}], examples), examples)
    )
    assert scores.values == {"Q->A": 100, "QA->R": 100, "Q->AR": 100}
    assert scores.notes == ("1 of 3 examples have no label that says which choice is right, and are not scored",)


def test_choices_of_other_data_have_an_accuracy():
    """Such as those of a table, without `facts["asks"]`; chance follows the number of their choices."""
    examples = [
        Example(f"train-{n}", {}, labels={"choices": ("a", "b", "c", "d", "e")[:count], "choice": 1})
        for n, count in enumerate((2, 5))
    ]
    metric = ChoiceAccuracy().build()
    scores = metric.score(predictions_of([{"choice": 1}, {"choice": 0}], examples), examples)
    assert scores.values == {"accuracy": 50} and scores.per_example["accuracy"] == [100, 0]
    assert metric.references(examples).values == {"chance_accuracy": 35}
    mixed = [*ITEMS[:1], *examples]
    scores = metric.score(predictions_of([{"choice": 0}, {"choice": 1}, {"choice": 0}], mixed), mixed)
    assert scores.values == {"Q->A": 100, "accuracy": 50}
