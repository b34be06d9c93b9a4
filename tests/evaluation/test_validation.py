"""Scores and predictions of a step that trains, on validation examples."""

from types import SimpleNamespace

import pytest

from mmgen.evaluation import validation
from mmgen.evaluation.validation import ShownPredictions, ValidationScores, predict_examples
from mmgen.parts import Metric, Picture
from mmgen.progress import Progress
from mmgen.tensors import Example, Generation, Prediction, Scores
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
    monkeypatch.setattr(validation, "predict_examples", lambda *_: TEXTS)


def test_shown_examples_have_one_alternative_and_the_pictures_that_are_known(texts, tmp_path):
    shown = ShownPredictions(None, context(tmp_path), EXAMPLES, PICTURES)(None)
    assert [entry.pictures for entry in shown] == [(PICTURES["p"],), ()]
    assert shown[0].example.inputs["caption"] == "one" and [entry.prediction for entry in shown] == TEXTS


def test_other_processes_have_no_predictions_and_no_scores(monkeypatch, tmp_path):
    monkeypatch.setattr(validation, "predict_examples", lambda *_: [])
    assert ShownPredictions(None, context(tmp_path, False), EXAMPLES, PICTURES)(None) == []
    assert ValidationScores(None, context(tmp_path, False), EXAMPLES, {"m": Lengths()})(None) == {}


def test_scores_are_those_of_the_metrics(texts, tmp_path):
    scores = ValidationScores(None, context(tmp_path), EXAMPLES, {"m": Lengths()})(None)
    assert scores == {"length": 10.0}


@pytest.mark.parametrize(("kind", "function"), [("text", "split_texts"), ("label", "split_predictions")])
def test_a_step_predicts_as_for_its_test_examples(kind, function, monkeypatch, tmp_path):
    label = Prediction("a", {"label": "red"}, 1.0)
    results = {"split_texts": [[text] for text in TEXTS], "split_predictions": [label]}
    monkeypatch.setattr(validation, function, lambda model, silent, examples, last: results[function])
    recipe = SimpleNamespace(predicts=lambda step: ("answers", kind), decoding=None)
    assert predict_examples(recipe, context(tmp_path), None, EXAMPLES) == (TEXTS if kind == "text" else [label])
