"""Answers are compared as in VQA's official evaluation: its numbers, and cases written by hand."""

import json
import random

import pytest
from kit.oracles import ORACLES
from mmgen_vision.answers import accuracy, agreement, normalise


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


def test_vqa_accuracy_and_agreement_leave_each_person_out_in_turn():
    draw = random.Random(0)
    for _ in range(200):
        people = [draw.choice(["one", "1", "two", "a dog", "dog", "Dogs"]) for _ in range(10)]
        answer = draw.choice(people)
        normal = [normalise(text) for text in people] if len(set(people)) > 1 else people
        mine = normalise(answer) if len(set(people)) > 1 else answer
        rest = [normal[:left] + normal[left + 1 :] for left in range(10)]
        by_hand = sum(min(1, sum(text == mine for text in nine) / 3) for nine in rest) / 10
        assert accuracy(answer, people) == pytest.approx(100 * by_hand)
        alike = sum(min(1, nine.count(normal[left]) / 3) for left, nine in enumerate(rest)) / 10
        assert agreement(people) == pytest.approx(100 * alike)
