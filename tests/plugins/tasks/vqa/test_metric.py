"""VQA's accuracy by type of question and answer, and the accuracy of people."""

import pytest
from kit.judged import QUESTIONS, TEN, Judges, predictions_of, question_example
from mmgen_tasks import VqaAccuracy

from mmgen.tensors import Example, Generation
from mmgen.testing import MetricSuite


class TestVqaAccuracy(Judges):
    scored_examples = QUESTIONS

    def config(self):
        return VqaAccuracy(by_question_type=True)

    def value(self, n, example):
        return {"label": example.targets[0] if n % 2 else "yes", "probabilities": {}}


class TestVqaAccuracyOfTexts(TestVqaAccuracy):
    def generations(self, examples):
        return MetricSuite.generations(self, examples)


def test_vqa_accuracy_by_type_of_labels_and_texts():
    labels = predictions_of([{"label": text} for text in ("yes", "no", "2", "dark red", "green")], QUESTIONS)
    scores = VqaAccuracy(by_question_type=True).build().score(labels, QUESTIONS)
    assert {name: round(value, 6) for name, value in scores.values.items()} == {
        "accuracy": 78.0,
        "yes/no": 100.0,
        "number": 100.0,
        "other": 45.0,
        "how many": 100.0,
        "is the": 100.0,
        "what color is the": 45.0,
    }
    assert [*scores.values][:4] == ["accuracy", "yes/no", "number", "other"]
    assert scores.per_example["number"] == [None, None, pytest.approx(100), None, None]
    texts = [Generation(prediction.id, prediction.value["label"], (), 0.0) for prediction in labels]
    assert VqaAccuracy().build().score(texts, QUESTIONS).values == {
        name: scores.values[name] for name in ("accuracy", "yes/no", "number", "other")
    }


def test_a_question_type_named_like_an_answer_type_has_a_separate_column():
    examples = [question_example(0, TEN, "number", "number"), question_example(1, TEN, "other", "accuracy")]
    scores = (
        VqaAccuracy(by_question_type=True).build().score(predictions_of([{"label": "red"}] * 2, examples), examples)
    )
    assert [*scores.values] == ["accuracy", "number", "other", "accuracy (question)", "number (question)"]


def test_accuracy_of_people_and_of_the_most_common_answers():
    scores = VqaAccuracy(by_question_type=True).build().references(QUESTIONS)
    # six say red and five others agree with each; three have two others; one has none
    assert scores.values["other"] == pytest.approx(10 * (6 + 3 * 2 / 3))
    assert scores.per_example["yes/no"][:2] == [100, pytest.approx(10 * (5 + 4))]
    assert scores.values["chance_accuracy"] == pytest.approx(100)  # four or more people say yes, 2 and red
    assert VqaAccuracy().build().references([question_example(0, TEN), question_example(1, ("blue",) * 10)]).values == {
        "accuracy": pytest.approx((80 + 100) / 2),
        "other": pytest.approx((80 + 100) / 2),
        "chance_accuracy": 50,  # blue, the most common of twenty answers
        "chance_other": 50,
    }


def test_questions_without_answers_are_not_scored():
    examples = [*QUESTIONS[:1], Example("q9", {"image": "2"})]
    scores = VqaAccuracy().build().score(predictions_of([{"label": "yes"}] * 2, examples), examples)
    assert scores.values == {"accuracy": 100, "yes/no": 100} and scores.per_example["accuracy"] == [100, None]
    assert scores.notes == ("1 of 2 examples have no answers of people, and are not scored",)
    assert VqaAccuracy().build().score(predictions_of([{"label": "yes"}], examples[1:]), examples[1:]).values == {
        "accuracy": None
    }
