"""Drawn scenes with prompts: every prompt is true of its question; without prompts the examples are the same."""

from dataclasses import replace

import pytest
from mmgen_scenes import ScenePrompts
from mmgen_scenes.prompts import asked_about
from mmgen_scenes.questions import find_answers
from mmgen_vision.box_words import box_in_words

from mmgen.prompts import prompts_of
from mmgen.testing import DatasetSuite

SIZES = {"train_size": 25, "val_size": 3, "test_size": 12}


class TestScenePrompts(DatasetSuite):
    def config(self):
        return ScenePrompts(train_size=6, val_size=2, test_size=2, image_size=64)


@pytest.fixture(scope="module")
def data():
    return ScenePrompts(**SIZES).build()


def test_prompts_are_true_of_their_questions(data):
    kinds = set()
    for example in data.split("train"):
        things = example.facts["things"]
        assert len(example.targets) == len(prompts_of(example)) > 0
        for question, prompt in zip(example.targets, prompts_of(example), strict=True):
            kind, value = prompt.split(": ")
            verdict, thing = find_answers(question, things), things[asked_about(question, things)]
            truth = {"answer": verdict.answers, "form": {verdict.form}, "thing": {box_in_words(thing["box"])}}
            assert truth[kind] == {value}
            kinds.add(kind)
    assert kinds == {"answer", "thing", "form"}


def test_a_scored_example_has_one_prompt(data):
    examples = data.split("test")
    assert all(len({*prompts_of(example)}) == 1 for example in examples)
    assert all(": ".join((e.facts["prompt_kind"], e.facts["prompt_value"])) == prompts_of(e)[0] for e in examples)
    assert examples[0].id == "test-00000:1" and examples[0].inputs["image"] == "test-00000"


def test_without_prompts_only_the_label_is_missing(data):
    config = ScenePrompts(**SIZES, prompts=False)
    assert config.labels == () and data.config.labels == ("prompt",)
    for split in ("train", "test"):
        expected = [replace(example, labels={}) for example in data.split(split)]
        assert list(config.build().split(split)) == expected


def test_one_kind_of_prompt():
    examples = ScenePrompts(**SIZES, about=("answer",)).build().split("train")
    assert all(prompt.startswith("answer: ") for example in examples for prompt in prompts_of(example))
