"""VQA's accuracy by types of questions and answers, and what people reach."""

import pytest
from kit.judged import QUESTIONS, TEN, Judges, predictions_of, question_example
from mmgen_tasks import VqaAccuracy

from mmgen.tensors import Example, Generation
from mmgen.testing import MetricSuite


class TestVqaAccuracy(Judges):
    given = QUESTIONS

    def config(self):
        return VqaAccuracy(by_question_type=True)

    def value(self, n, example):
        return {"label": example.targets[0] if n % 2 else "yes", "probabilities": {}}


class TestVqaAccuracyOfTexts(TestVqaAccuracy):
    def generations(self, examples):
        return MetricSuite.generations(self, examples)


def test_vqa_accuracy_by_type_of_labels_and_texts():
    labels = predictions_of([{"label": text} for text in ("yes", "no", "2", "dark red", "green")], QUESTIONS)
    found = VqaAccuracy(by_question_type=True).build().score(labels, QUESTIONS)
    assert {name: round(value, 6) for name, value in found.values.items()} == {
        "accuracy": 78.0,
        "yes/no": 100.0,
        "number": 100.0,
        "other": 45.0,
        "how many": 100.0,
        "is the": 100.0,
        "what color is the": 45.0,
    }
    assert [*found.values][:4] == ["accuracy", "yes/no", "number", "other"]
    assert found.per_example["number"] == [None, None, pytest.approx(100), None, None]
    texts = [Generation(one.id, one.value["label"], (), 0.0) for one in labels]
    assert VqaAccuracy().build().score(texts, QUESTIONS).values == {
        name: found.values[name] for name in ("accuracy", "yes/no", "number", "other")
    }


def test_a_question_type_that_is_called_like_an_answer_type_has_a_column_of_its_own():
    examples = [question_example(0, TEN, "number", "number"), question_example(1, TEN, "other", "accuracy")]
    found = VqaAccuracy(by_question_type=True).build().score(predictions_of([{"label": "red"}] * 2, examples), examples)
    assert [*found.values] == ["accuracy", "number", "other", "accuracy (question)", "number (question)"]


def test_what_people_and_the_most_common_answers_reach():
    found = VqaAccuracy(by_question_type=True).build().references(QUESTIONS)
    # six say red and each finds five more; three find two; one finds nobody
    assert found.values["other"] == pytest.approx(10 * (6 + 3 * 2 / 3))
    assert found.per_example["yes/no"][:2] == [100, pytest.approx(10 * (5 + 4))]
    assert found.values["chance_accuracy"] == pytest.approx(100)  # yes, 2 and red are said by four or more
    assert VqaAccuracy().build().references([question_example(0, TEN), question_example(1, ("blue",) * 10)]).values == {
        "accuracy": pytest.approx((80 + 100) / 2),
        "other": pytest.approx((80 + 100) / 2),
        "chance_accuracy": 50,  # blue, of twenty answers the most common
        "chance_other": 50,
    }


def test_questions_that_nobody_has_answered_are_not_scored():
    examples = [*QUESTIONS[:1], Example("q9", {"image": "2"})]
    found = VqaAccuracy().build().score(predictions_of([{"label": "yes"}] * 2, examples), examples)
    assert found.values == {"accuracy": 100, "yes/no": 100} and found.per_example["accuracy"] == [100, None]
    assert found.notes == ("1 of 2 examples have no answers of people, and are not scored",)
    assert VqaAccuracy().build().score(predictions_of([{"label": "yes"}], examples[1:]), examples[1:]).values == {
        "accuracy": None
    }
