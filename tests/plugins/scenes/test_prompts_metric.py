"""Obedience: what counts as a question for an answer, a thing, a form, and a type of VQA."""

import pytest
from mmgen_scenes import Obedience, ScenePrompts
from mmgen_scenes.obedience import UNKNOWN, obeys

from mmgen.examples import Example, Generation
from mmgen.testing import MetricSuite

THINGS = [
    {"kind": kind, "color": color, "size": "big", "place": "grass", "side": side, "facing": "left", "box": box}
    for kind, color, side, box in (
        ("dog", "brown", "left", [0.1, 0.6, 0.3, 0.8]),
        ("car", "red", "right", [0.7, 0.6, 0.95, 0.8]),
        ("ball", "red", "right", [0.7, 0.81, 0.8, 0.95]),
    )
]


class TestObedience(MetricSuite):
    def config(self):
        return Obedience()

    def examples(self):
        return ScenePrompts(train_size=1, val_size=1, test_size=2).build().split("test")


@pytest.fixture(scope="module")
def examples():
    return ScenePrompts(train_size=2, val_size=2, test_size=25).build().split("test")


@pytest.mark.parametrize(
    ("kind", "value", "question", "obeyed"),
    [
        ("answer", "red", "what color is the car?", True),
        ("answer", "red", "what color is the dog?", False),
        ("answer", "red", "what color is the cat?", False),
        ("answer", "no", "is the dog near the car?", True),
        ("thing", "left1 top6 right3 bottom8", "where is the dog?", True),
        ("thing", "left1 top6 right3 bottom8", "where is the white dog?", False),
        ("thing", "left1 top6 right3 bottom8", "is the car bigger than the dog?", False),
        ("thing", "left1 top6 right3 bottom8", "what is it?", False),
        ("form", "how many", "how many cats are there?", True),
        ("form", "how many", "how many?", False),
        ("question type", "how many", "How many people came?", True),
        ("question type", "is the", "is there a dog?", False),
    ],
)
def test_what_obeys(kind, value, question, obeyed):
    assert obeys(question, kind, value, {"things": THINGS}) is obeyed


def test_references_obey_and_other_questions_of_the_picture_rarely_do(examples):
    scores = Obedience().build().references(examples)
    assert [scores.values[f"obedience{kind}"] for kind in ("", "_answer", "_thing", "_form")] == [100] * 4
    assert 0 < scores.values["chance_obedience"] < 30
    assert scores.notes == ("chance: questions about the same picture that were written for other prompts",)


def test_each_kind_has_a_column(examples):
    texts = [
        Generation(e.id, e.targets[0] if e.facts["prompt_kind"] == "form" else "what is it?", (), 0.0) for e in examples
    ]
    scores = Obedience().build().score(texts, examples)
    share = 100 * sum(e.facts["prompt_kind"] == "form" for e in examples) / len(examples)
    assert scores.values["obedience"] == pytest.approx(share) and scores.values["obedience_form"] == 100
    assert scores.values["obedience_answer"] == scores.values["obedience_thing"] == 0
    assert scores.per_example["obedience"] == [100.0 * (e.facts["prompt_kind"] == "form") for e in examples]


def test_prompts_that_words_cannot_judge():
    example = Example("a:1", {}, ("why?",), {"prompt_kind": "level", "prompt_value": "2"})
    scores = Obedience().build().score([Generation("a:1", "why?", (), 0.0)], [example])
    assert scores.values == {"obedience": None} and scores.notes == (UNKNOWN,)
