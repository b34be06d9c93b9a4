"""Answers are compared as in VQA's official evaluation: its numbers, and cases written by hand."""

import json

import pytest
from kit.oracles import ORACLES
from mmgen_vision.answers import accuracy, normalise


def test_vqa_accuracy_equals_the_official_one():
    cases = json.loads((ORACLES / "vqa_accuracy.json").read_text(encoding="utf-8"))
    differ = [case for case in cases if round(accuracy(case["answer"], case["answers"]), 2) != case["accuracy"]]
    assert len(cases) == 300 and not differ


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The Cat", "cat"),
        ("none", "0"),
        ("ten, eleven", "10 eleven"),
        ("black/white", "black white"),
        ("black / white", "black white"),
        ("2,000", "2000"),
        ("1,5/2", "152"),  # with a comma between digits no punctuation leaves a blank
        ("1.5", "1.5"),
        ("1.", "1"),
        ("U.K.", "uk"),
        ("." * 40, "." * 8),  # 32 points are removed
        ("isnt that a dogs", "isn't that dogs"),
        ("shouldntve shouldnt've", "shouldntve shouldn't've"),
        ("lets im oclock twas", "lets im o'clock 'twas"),
        ("somebody'd", "somebodyd"),
        ("\tx-ray\n", "x ray"),
        ("an", ""),
    ],
)
def test_answers_are_normalised_as_officially(text, normal):
    assert normalise(text) == normal
