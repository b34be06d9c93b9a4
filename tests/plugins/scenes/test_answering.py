"""Answers to questions about drawn scenes: those that the data set `scene_answers` knows, and reasons for none."""

import pytest
from mmgen_scenes import Scenes
from mmgen_scenes.answering import FORMS, Verdict, find_answers
from mmgen_tasks import SceneAnswers


def thing(kind, color, x, y=0.8, size="big", place="grass", facing="right"):
    side = "left" if x < 0.4 else "right" if x > 0.6 else ""
    half = 0.1 if size == "big" else 0.05
    box = [x - half, y - half, x + half, y + half]
    return {"kind": kind, "color": color, "size": size, "place": place, "side": side, "facing": facing, "box": box}


SCENE = (
    thing("dog", "brown", 0.15),
    thing("ball", "red", 0.40, size="small"),
    thing("cup", "blue", 0.8, size="small"),
    thing("bird", "blue", 0.2, 0.2, "small", "sky", "left"),
    thing("bird", "blue", 0.8, 0.2, "small", "sky", "left"),
    thing("car", "red", 0.85, 0.6, facing="left"),
)


@pytest.mark.parametrize(
    ("question", "form", "answers"),
    [
        ("what color is the dog?", "what color", {"brown"}),
        ("What color are the birds ?", "what color", {"blue"}),
        ("how many birds are in the sky?", "how many", {"2"}),
        ("where is the ball?", "where", {"on the grass"}),
        ("where are the birds?", "where", {"in the sky"}),
        ("on which side is the dog?", "which side", {"left"}),
        ("is the dog bigger than the ball?", "is it bigger", {"yes"}),
        ("is the dog smaller than the ball?", "is it bigger", {"no"}),
        ("is the dog to the left of the ball?", "is it beside", {"yes"}),
        ("is the dog near the cup?", "is it beside", {"no"}),
        ("is there a red ball?", "is there", {"yes"}),
        ("is there a green tree?", "is there", {"no"}),
        ("is there a red ball near the dog?", "is there near", {"yes"}),
        ("is there a kite near the dog?", "is there near", {"no"}),
        ("what is next to the dog?", "what is beside", {"ball"}),
        ("what is to the right of the ball?", "what is beside", {"cup", "bird", "car"}),
        ("what is the dog looking at?", "what is it looking at", {"ball"}),
        ("which way is the car going?", "which way", {"left"}),
    ],
)
def test_answers(question, form, answers):
    assert find_answers(question, SCENE) == Verdict(form, frozenset(answers))
    assert find_answers(question, SCENE).answerable is True


@pytest.mark.parametrize(
    ("question", "form", "reason"),
    [
        ("what color is the cat?", "what color", "not there"),
        ("what color is the zeppelin?", "what color", "not there"),
        ("where is the blue dog?", "where", "not there"),
        ("how many kites are there?", "how many", "not there"),
        ("is there a dog near the tree?", "is there near", "not there"),
        ("what is to the left of the dog?", "what is beside", "not there"),
        ("what is the ball looking at?", "what is it looking at", "not there"),
        ("which way is the dog going?", "which way", "not there"),
        ("on which side are the birds?", "which side", "in doubt"),
        ("is the dog bigger than the car?", "is it bigger", "in doubt"),
        ("is the dog above the ball?", "is it beside", "in doubt"),
        ("is the cup near the ball?", "is it beside", "in doubt"),
        ("why is the dog brown?", "", "no question"),
        ("the dog", "", "no question"),
        ("", "", "no question"),
    ],
)
def test_reasons(question, form, reason):
    verdict = find_answers(question, SCENE)
    assert verdict == Verdict(form, reason=reason)
    assert verdict.answerable is (None if reason == "in doubt" else False)


@pytest.mark.slow
def test_the_answers_are_those_of_the_data_set():
    forms = set()
    for example in SceneAnswers(train_size=150, val_size=1, test_size=1).build().split("train"):
        verdict = find_answers(example.inputs["question"], example.facts["things"])
        assert verdict.form == example.facts["question_type"], example.inputs
        assert example.inputs["answer"] in verdict.answers, (example.inputs, verdict)
        forms.add(verdict.form)
    assert forms == {*FORMS}


def test_a_question_about_its_own_scene_never_names_what_is_not_there():
    """The data set `scenes` asks what a thing looks at even if it looks at nothing, and nothing else that is false."""
    reasons = {
        (verdict.form, verdict.reason)
        for example in Scenes(train_size=100, val_size=1, test_size=1).build().split("train")
        for target in example.targets
        if not (verdict := find_answers(target, example.facts["things"])).answers
    }
    assert {form for form, reason in reasons if reason == "not there"} <= {"what is it looking at"}
    assert "no question" not in {reason for _, reason in reasons}
