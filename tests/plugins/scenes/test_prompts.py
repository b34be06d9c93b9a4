"""Drawn scenes with prompts: every prompt is true of its question; what obeys one; a run with prompts."""

import json
from dataclasses import replace

import pytest
from kit import toys
from mmgen_scenes import Obedience, ScenePrompts
from mmgen_scenes.obedience import UNKNOWN, obeys
from mmgen_scenes.prompts import asked_about
from mmgen_scenes.questions import find_answers
from mmgen_vision.box_words import box_in_words

from mmgen.examples import Example, Generation
from mmgen.prompts import prompts_of
from mmgen.testing import DatasetSuite, MetricSuite

SIZES = {"train_size": 25, "val_size": 3, "test_size": 12}


class TestScenePrompts(DatasetSuite):
    def config(self):
        return ScenePrompts(train_size=6, val_size=2, test_size=2, image_size=64)


@pytest.fixture(scope="module")
def prompted():
    return ScenePrompts(**SIZES).build()


def test_prompts_are_true_of_their_questions(prompted):
    kinds = set()
    for example in prompted.split("train"):
        things = example.facts["things"]
        assert len(example.targets) == len(prompts_of(example)) > 0
        for question, prompt in zip(example.targets, prompts_of(example), strict=True):
            kind, value = prompt.split(": ")
            verdict, thing = find_answers(question, things), things[asked_about(question, things)]
            truth = {"answer": verdict.answers, "form": {verdict.form}, "thing": {box_in_words(thing["box"])}}
            assert truth[kind] == {value}
            kinds.add(kind)
    assert kinds == {"answer", "thing", "form"}


def test_without_prompts_the_examples_are_the_same(prompted):
    for split in ("train", "test"):
        without = [replace(example, labels={}) for example in prompted.split(split)]
        assert [*ScenePrompts(**SIZES, prompts=False).build().split(split)] == without


def test_a_scored_example_has_one_prompt(prompted):
    examples = prompted.split("test")
    assert all(len({*prompts_of(example)}) == 1 for example in examples)
    assert all(": ".join((e.facts["prompt_kind"], e.facts["prompt_value"])) == prompts_of(e)[0] for e in examples)
    assert examples[0].id == "test-00000:1" and examples[0].inputs["image"] == "test-00000"


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
def scored():
    return ScenePrompts(train_size=2, val_size=2, test_size=25).build().split("test")


@pytest.mark.parametrize(
    ("kind", "value", "question", "obeyed"),
    [
        ("answer", "red", "what color is the car?", True),
        ("answer", "red", "what color is the dog?", False),
        ("answer", "no", "is the dog near the car?", True),
        ("thing", "left1 top6 right3 bottom8", "where is the dog?", True),
        ("thing", "left1 top6 right3 bottom8", "where is the white dog?", False),
        ("thing", "left1 top6 right3 bottom8", "is the car bigger than the dog?", False),
        ("form", "how many", "how many cats are there?", True),
        ("form", "how many", "how many?", False),
        ("question type", "how many", "How many people came?", True),
        ("question type", "is the", "is there a dog?", False),
    ],
)
def test_what_obeys(kind, value, question, obeyed):
    assert obeys(question, kind, value, {"things": THINGS}) is obeyed


def test_references_obey_and_other_questions_of_the_picture_rarely_do(scored):
    scores = Obedience().build().references(scored)
    assert [scores.values[f"obedience{kind}"] for kind in ("", "_answer", "_thing", "_form")] == [100] * 4
    assert 0 < scores.values["chance_obedience"] < 30
    assert scores.notes == ("chance: questions about the same picture that were written for other prompts",)


def test_each_kind_has_a_column(scored):
    texts = [
        Generation(e.id, e.targets[0] if e.facts["prompt_kind"] == "form" else "what is it?", (), 0.0) for e in scored
    ]
    scores = Obedience().build().score(texts, scored)
    share = 100 * sum(e.facts["prompt_kind"] == "form" for e in scored) / len(scored)
    assert scores.values["obedience"] == pytest.approx(share) and scores.values["obedience_form"] == 100
    assert scores.values["obedience_answer"] == scores.values["obedience_thing"] == 0


def test_prompts_that_words_cannot_judge():
    example = Example("a:1", {}, ("why?",), {"prompt_kind": "level", "prompt_value": "2"})
    scores = Obedience().build().score([Generation("a:1", "why?", (), 0.0)], [example])
    assert scores.values == {"obedience": None} and scores.notes == (UNKNOWN,)


@pytest.mark.slow
@pytest.mark.usefixtures("no_page")
def test_a_run_writes_for_its_prompts_and_scores_obedience(tmp_path):
    recipe = toys.recipe(data={"type": "scene_prompts"}, metrics={"obedience": {"type": "obedience"}})
    (tmp_path / "toy.toml").write_text(recipe)
    done = toys.mmgen_here(tmp_path, "run", "toy.toml")
    assert done.returncode == 0, done.stderr
    run = tmp_path / toys.PLACE
    lines = [json.loads(line) for line in (run / "steps/second/generations.jsonl").read_text().splitlines()]
    examples = [json.loads(line) for line in (run / "examples.jsonl").read_text().splitlines()]
    assert [text["prompt"] for (text,) in lines] == [example["labels"]["prompt"][0] for example in examples]
    header = (run / "table.md").read_text().splitlines()[2]
    assert "obedience_answer" in header and "obedience_form" in header
