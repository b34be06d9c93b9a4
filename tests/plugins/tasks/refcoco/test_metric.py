"""Accuracy of the boxes that expressions refer to."""

from dataclasses import replace

import pytest
from kit.judged import BOXES, EXPRESSIONS, FAR, Judges, predictions_of
from mmgen_tasks import BoxAccuracy

from mmgen.tensors import Example


class TestBoxAccuracy(Judges):
    scored_examples = EXPRESSIONS

    def config(self):
        return BoxAccuracy()

    def value(self, n, example):
        return {"box": list(BOXES[0]), "index": 0}


def test_an_overlap_of_exactly_a_half_is_right():
    example = Example("r", {}, labels={"box": (0.1, 0.1, 0.7, 0.4)})
    for box, percent in (((0.1, 0.1, 0.4, 0.4), 100), ((0.1, 0.1, 0.399, 0.4), 0)):
        assert BoxAccuracy().build().score(predictions_of([{"box": box}], [example]), [example]).values == {
            "accuracy": percent
        }


def test_right_boxes_and_the_box_that_is_right_most_often():
    scores = BoxAccuracy().build().score(predictions_of([{"box": BOXES[0], "index": 4}] * 3, EXPRESSIONS), EXPRESSIONS)
    assert scores.per_example["accuracy"] == [100, 0, 100]
    assert BoxAccuracy().build().references(EXPRESSIONS).values == {"chance_accuracy": pytest.approx(200 / 3)}


def test_columns_by_a_fact():
    examples = [replace(e, facts={"combination": "unseen" if n else "seen"}) for n, e in enumerate(EXPRESSIONS)]
    predicted = predictions_of([{"box": BOXES[0]}, {"box": BOXES[1]}, {"box": FAR}], examples)
    values = BoxAccuracy(by=["combination"]).build().score(predicted, examples).values
    assert values == {"accuracy": pytest.approx(200 / 3), "seen": 100, "unseen": 50}
