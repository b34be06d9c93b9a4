"""Drawn answers: true beyond doubt, balanced as documented, in the shape of VQA's examples."""

from collections import Counter

import pytest
from mmgen_scenes import Scenes
from mmgen_scenes.answering import find_answers
from mmgen_tasks import SceneAnswers
from mmgen_tasks.vqa.drawn import WRONG_ANSWERS
from mmgen_tasks.vqa.drawn_questions import ANSWERS
from pydantic import ValidationError

from mmgen.testing import DatasetSuite

pytestmark = pytest.mark.slow


SMALL = SceneAnswers(train_size=700, val_size=20, test_size=100)


class TestSceneAnswers(DatasetSuite):
    def config(self):
        return SceneAnswers(train_size=8, val_size=2, test_size=2, image_size=64)


def test_examples_have_the_shape_of_vqa(data):
    first = data.split("train")[0]
    assert set(first.inputs) == {"image", "question", "answer"} and set(first.labels) == {"answers"}
    assert (first.id, first.inputs["image"]) == ("train-00000-0", "train-00000")
    assert len(first.targets) == 1 and len(data.split("test")[0].targets) == 10
    assert len(SMALL.model_copy(update={"train_targets": "all"}).build().split("train")[0].targets) == 10
    assert data.vocabularies() == {"answers": ANSWERS} and len(set(ANSWERS)) == 47


def test_scenes_are_those_of_the_captions(data):
    plain = Scenes(train_size=3, val_size=1, test_size=1).build()
    ours = {picture.key: picture for picture, _ in zip(data.pictures(), range(3), strict=False)}
    for picture in list(plain.pictures())[:3]:
        assert ours[picture.key].boxes == picture.boxes and ours[picture.key].region_names == picture.region_names
        assert ours[picture.key].load().tobytes() == picture.load().tobytes()


def test_sizes_do_not_change_earlier_examples(data):
    fewer = SceneAnswers(train_size=3, val_size=1, test_size=2).build()
    for name in fewer.splits():
        assert fewer.split(name) == data.split(name)[: len(fewer.split(name))]
    assert SceneAnswers(train_size=3, seed=1).build().split("train") != fewer.split("train")


def test_the_number_of_questions_per_scene():
    for questions, things in ((6, 4), (1, 7)):
        config = SceneAnswers(train_size=40, questions=questions, min_things=things, max_things=things)
        counts = Counter(example.inputs["image"] for example in config.build().split("train"))
        assert set(counts.values()) == {questions}


def test_nine_people_agree_and_one_gives_a_near_miss(data):
    for example in data.split("test"):
        (answer, right_count), (wrong_answer, wrong_count) = Counter(example.targets).most_common()
        assert (right_count, wrong_count) == (9, 1) and wrong_answer in WRONG_ANSWERS[answer]
        assert example.labels["answers"] == {answer: 1.0, wrong_answer: 0.3}
    places = Counter(
        next(i for i, answer in enumerate(example.targets) if example.targets.count(answer) == 1)
        for example in data.split("test")
    )
    assert len(places) == 10
    assert all(
        set(wrong_answers) <= set(ANSWERS) and answer not in wrong_answers
        for answer, wrong_answers in WRONG_ANSWERS.items()
    )
    assert set(WRONG_ANSWERS) == set(ANSWERS)


def test_splits_that_do_not_exist(data):
    with pytest.raises(
        ValidationError, match="train_split: drawn scenes have no split 'all'; choose from: train, val, test"
    ):
        SceneAnswers(train_split="all")
    with pytest.raises(Exception, match="drawn scenes with answers have no split 'dev'; choose from: train, val, test"):
        data.split("dev")


def test_a_share_of_the_questions_names_what_is_not_there():
    plain = SceneAnswers(train_size=40, val_size=1, test_size=10)
    changed = plain.model_copy(update={"unanswerable": 0.3}).build()
    assert changed.vocabularies() == {"answers": (*ANSWERS, "unanswerable")}
    pairs = [*zip(plain.build().split("train"), changed.split("train"), strict=True)]
    replaced = [example for before, example in pairs if before != example]
    assert 0.2 < len(replaced) / len(pairs) < 0.4
    for example in replaced:
        verdict = find_answers(example.inputs["question"], example.facts["things"])
        assert (verdict.reason, verdict.form) == ("not there", example.facts["question_type"])
        assert example.inputs["answer"] == example.facts["answer_type"] == "unanswerable"
    tested = [example for example in changed.split("test") if example.inputs["answer"] == "unanswerable"]
    assert tested and all(Counter(example.targets)["unanswerable"] == 9 for example in tested)


def test_types_of_answers(data):
    for example in (example for name in data.splits() for example in data.split(name)):
        answer = max(example.labels["answers"], key=example.labels["answers"].get)
        kind = "yes/no" if answer in ("yes", "no") else "number" if answer.isdigit() else "other"
        assert example.facts["answer_type"] == kind and example.facts["image"] == example.inputs["image"]
