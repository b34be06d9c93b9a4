"""The model card of an export: its parts, from what a run knows of its step."""

from types import SimpleNamespace

import pytest

from mmgen.inference import model_card
from mmgen.inference.model_card import Evaluation, _describe_half_precision, _describe_licenses, _describe_start
from mmgen.tensors import Scores


def step(before=None, weights=None):
    return SimpleNamespace(before=before, weights=weights)


@pytest.mark.parametrize(
    ("step", "backbone", "words"),
    [
        (step(before="first"), None, "step 'first'"),
        (step(weights="some/model"), None, "published weights"),
        (step(), SimpleNamespace(weights="bert-base"), "the pretrained encoder"),
        (step(), SimpleNamespace(weights=None), "random weights"),
    ],
)
def test_where_the_step_started(step, backbone, words):
    assert _describe_start(step, backbone) == words


def test_rounding_is_measured_or_said_not_to_be():
    before = Evaluation(scores=Scores({"accuracy": 50.0}))
    assert _describe_half_precision(before, None, {"dtype": "float32"}) == ""
    assert _describe_half_precision(before, None, {"dtype": "bfloat16"}).endswith(
        "The effect on the scores was not measured: no data."
    )
    lines = _describe_half_precision(before, Scores({"accuracy": 48.5}), {"dtype": "bfloat16"}).splitlines()
    assert lines[-1] == "| accuracy |   50.00 |    48.50 |"


def test_licences_are_named_or_said_to_be_unknown():
    assert _describe_licenses({"licenses": {"backbone": "mit"}}) == ["Licence of the weights of 'backbone': mit."]
    assert "does not know the licences" in _describe_licenses({"licenses": {}})[0]


def test_an_export_of_an_export_has_no_examples():
    assert model_card._read_evaluation(SimpleNamespace(folder=None, step="a", recipe=None)) == Evaluation()
