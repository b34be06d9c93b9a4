"""Drawn choices: one answer and one rationale of four are right; mentions identify the things."""

import pytest
from kit.scenes import mark_mentions
from mmgen_tasks import SceneChoices
from mmgen_tasks.vcr.items import NAMES

from mmgen.tensors import All
from mmgen.testing import DatasetSuite

pytestmark = pytest.mark.slow


class TestSceneChoices(DatasetSuite):
    def config(self):
        return SceneChoices(train_size=4, val_size=1, test_size=1, image_size=64)


class TestSceneChoicesWithNames(DatasetSuite):
    def config(self):
        return SceneChoices(train_size=4, val_size=1, test_size=1, image_size=64, tags="names", subtask="every")


def test_mentions_are_the_names_of_things(data):
    for tags in ("kinds", "names"):
        for example in SceneChoices(train_size=20, tags=tags).build().split("train"):
            texts = [(example.inputs["question"], example.inputs["question_mentions"].values)]
            texts += zip(example.labels["choices"], example.labels["choice_mentions"], strict=True)
            for text, mentions in texts:
                assert mentions
                for start, end, (thing,) in mentions:
                    kind = example.facts["things"][thing]["kind"]
                    assert text[start:end] == (kind if tags == "kinds" else NAMES[thing])
                    assert text[:start].endswith("the ") == (tags == "kinds")


def test_names_change_nothing_but_the_words(data):
    named = SceneChoices(train_size=9, tags="names").build().split("train")
    for first, second in zip(data.split("train"), named, strict=False):
        mentions = [first.inputs["question_mentions"].values, *first.labels["choice_mentions"]]
        other_mentions = [second.inputs["question_mentions"].values, *second.labels["choice_mentions"]]
        texts = [first.inputs["question"], *first.labels["choices"]]
        other_texts = [second.inputs["question"], *second.labels["choices"]]
        assert [*map(mark_mentions, texts, mentions)] == [*map(mark_mentions, other_texts, other_mentions)]
        assert first.labels["choice"] == second.labels["choice"] and first.facts == second.facts


def test_examples_have_the_shape_of_vcr(data):
    answer, rationale = data.split("test")[:2]
    assert (answer.id, rationale.id) == ("choices-test-00000-0-answer", "choices-test-00000-0-rationale")
    assert [example.facts["asks"] for example in (answer, rationale)] == ["answer", "rationale"]
    assert answer.facts["item"] == rationale.facts["group"] == "choices-test-00000-0"
    right = answer.labels["choice"]
    assert rationale.inputs["question"] == f"{answer.inputs['question']} {answer.labels['choices'][right]}"
    mentions_of_question, mentions_of_answer = (
        answer.inputs["question_mentions"],
        answer.labels["choice_mentions"][right],
    )
    mentions_of_both = rationale.inputs["question_mentions"]
    assert type(mentions_of_both) is All and len(mentions_of_both.values) == len(mentions_of_question.values) + len(
        mentions_of_answer
    )


def test_only_these_forms(data):
    """Other questions about the same pictures, so that features are shared, and not the same question twice."""
    some = SceneChoices(train_size=150, val_size=1, test_size=5, forms=["color", "side"], num_questions=2).build()
    assert [s.scenes for s in some.scene_sets("train")] == [s.scenes for s in data.scene_sets("train")]
    examples = [example for example in some.split("train") if example.facts["asks"] == "answer"]
    assert {example.facts["form"] for example in examples} == {"color", "side"}
    assert len({(e.inputs["image"], e.inputs["question"]) for e in examples}) == len(examples) > 250
    for example in examples:
        (x,) = example.inputs["question_mentions"].values[0][2]
        value = "color" if example.facts["form"] == "color" else "side"
        things = example.facts["things"]
        answers = [
            next(thing for *_, (thing,) in mentions if thing != x) for mentions in example.labels["choice_mentions"]
        ]
        same = [things[y][value] == things[x][value] for y in answers]
        assert [place for place, is_same in enumerate(same) if is_same] == [example.labels["choice"]]


def test_subtasks():
    def ids(subtask):
        examples = SceneChoices(train_size=1, num_questions=1, subtask=subtask).build().split("train")
        return [example.id.removeprefix("choices-train-00000-0-") for example in examples], examples

    both, all_subtasks = ["answer", "rationale"], ["answer", "rationale", *(f"rationale-{place}" for place in range(4))]
    assert [ids(subtask)[0] for subtask in ("answer", "rationale", "both", "every")] == [
        both[:1],
        both[1:],
        both,
        all_subtasks,
    ]
    answer, rationale, *conditioned = ids("every")[1]
    assert [
        example.inputs["question"].endswith(text)
        for example, text in zip(conditioned, answer.labels["choices"], strict=True)
    ]
    assert not any("choice" in example.labels for example in conditioned)
    right = conditioned[answer.labels["choice"]]
    assert right.inputs == rationale.inputs and right.labels["choices"] == rationale.labels["choices"]


@pytest.mark.parametrize("tags", ["kinds", "names"])
def test_classes_of_objects(tags):
    """The kinds of the things, in the order of their boxes; "person" for all things with names."""
    data = SceneChoices(train_size=4, val_size=1, test_size=1, tags=tags).build()
    known = data.vocabularies()["objects"]
    for example in data.split("train"):
        kinds = tuple(thing["kind"] for thing in example.facts["things"])
        assert example.labels["objects"] == (kinds if tags == "kinds" else ("person",) * len(kinds))
        assert set(example.labels["objects"]) <= set(known)
