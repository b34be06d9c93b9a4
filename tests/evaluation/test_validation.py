"""Scores and predictions of a step that trains, on validation examples."""

from types import SimpleNamespace

import pytest

from mmgen.evaluation import answers
from mmgen.evaluation.answers import best_answers, shown_examples, validation_scores
from mmgen.examples import Example, Generation, Prediction, Scores
from mmgen.parts import Metric, Picture
from mmgen.progress import Progress
from mmgen.training.context import StepContext

EXAMPLES = [Example("a", {"image": "p", "caption": ("one", "two")}), Example("b", {"image": "gone"})]
TEXTS = [Generation(example.id, "a dog", (), 0.0) for example in EXAMPLES]
PICTURES = {"p": Picture("p", None)}


class Lengths(Metric):
    def score(self, generations, examples):
        return Scores({"length": float(sum(len(text.text) for text in generations))})


def context(tmp_path, main=True):
    accelerator = SimpleNamespace(is_main_process=main)
    return StepContext("first", None, None, tmp_path, accelerator, Progress())


@pytest.fixture
def texts(monkeypatch):
    monkeypatch.setattr(answers, "split_answers", lambda *_: [[text] for text in TEXTS])


def test_shown_examples_have_one_alternative_and_the_pictures_that_are_known(texts, tmp_path):
    shown = shown_examples(None, context(tmp_path), EXAMPLES, PICTURES, None)
    assert [entry.pictures for entry in shown] == [(PICTURES["p"],), ()]
    assert shown[0].example.inputs["caption"] == "one" and [entry.prediction for entry in shown] == TEXTS


def test_other_processes_have_no_predictions_and_no_scores(monkeypatch, tmp_path):
    monkeypatch.setattr(answers, "split_answers", lambda *_: [])
    assert shown_examples(None, context(tmp_path, False), EXAMPLES, PICTURES, None) == []
    assert validation_scores(None, context(tmp_path, False), EXAMPLES, {"m": Lengths()}, None) == {}


def test_scores_are_those_of_the_metrics(texts, tmp_path):
    assert validation_scores(None, context(tmp_path), EXAMPLES, {"m": Lengths()}, None) == {"length": 10.0}


@pytest.mark.parametrize("kind", ["text", "label"])
def test_a_step_answers_as_for_its_test_examples(kind, monkeypatch, tmp_path):
    predictions = [Prediction("a", {"label": "red"}, 1.0)]
    results = {"text": [[text] for text in TEXTS], "label": predictions}
    monkeypatch.setattr(answers, "split_answers", lambda *_: results[kind])
    assert best_answers(None, context(tmp_path), EXAMPLES, None) == (TEXTS if kind == "text" else predictions)
