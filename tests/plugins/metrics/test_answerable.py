"""The metric answerable: its columns by hand with a stand-in that answers, and on a run of a few weights."""

from dataclasses import replace

import pytest
from kit import small_runs, toys
from mmgen_metrics import Answerable
from mmgen_metrics.answerer import Answered

from mmgen.errors import DataError
from mmgen.evaluation.score import read
from mmgen.examples import Example, Generation
from mmgen.parts import Picture
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.runs.run import run
from mmgen.testing import MetricSuite

COLORS = ("red", "blue", "green", "red")
EXAMPLES = [
    Example(f"e{n}", {"image": f"p{n}", "wish": "Red."}, ("what color is it?",), {"purpose": "color"}) for n in range(4)
]


def pictures(examples):
    return {example.inputs["image"]: Picture(example.inputs["image"], None) for example in examples}


class StandIn:
    """Answers questions about colours, surely about all pictures but p1, and says that other questions have no
    answer."""

    name = "a stand-in"

    def __call__(self, questions):
        return [self.answer(text, picture.key) for text, picture in questions]

    def answer(self, text, key):
        if not text.strip():
            return Answered({})
        if "color" not in text:
            return Answered({"unanswerable": 0.9, "red": 0.1})
        color = COLORS[int(key[1:])]
        sure = 0.4 if key == "p1" else 0.8
        return Answered({color: sure, "yellow": 0.2})


def metric(**settings):
    built = Answerable(answerer="nowhere", **settings).build()
    built.pictures, built.answerer = pictures, StandIn()
    return built


def texts(*lines):
    return [Generation(f"e{number}", line, (), 0.0) for number, line in enumerate(lines)]


class TestAnswerable(MetricSuite):
    def config(self):
        return Answerable(answerer="nowhere")

    def metric(self):
        return metric()

    def examples(self):
        return EXAMPLES


def test_columns():
    scores = metric(condition="wish").score(texts("what color is it?", "which color?", "why?", ""), EXAMPLES)
    assert scores.per_example["answered"] == [100.0, 0.0, 0.0, 0.0]  # p1 has a confidence of 0.4
    assert scores.per_example["answer_confidence"] == pytest.approx([80.0, 40.0, 0.0, 0.0])
    assert scores.per_example["answer_consistency"] == [100.0, 0.0, 0.0, 0.0]  # "Red." and "red" are one answer
    elsewhere = (0.0 + 0.0 + 0.8) / 3  # "red" about p1, p2 and p3
    assert scores.per_example["picture_gain"] == [pytest.approx(80 - 100 * elsewhere), None, None, None]
    assert scores.values["answered"] == 25 and scores.values["picture_gain"] == pytest.approx(80 - 100 * elsewhere)
    assert scores.notes == ("answerable: answers by a stand-in",)


def test_the_threshold_and_the_answers_that_are_none():
    questions = texts("what color is it?", "which color?", "why?", "why?")
    assert metric(threshold=0.3).score(questions, EXAMPLES).values["answered"] == 50
    assert metric(unanswerable=()).score(questions, EXAMPLES).values["answered"] == 75
    assert metric(unanswerable=("red",)).score(questions, EXAMPLES).values["answered"] == 50


def test_without_other_pictures():
    scores = metric(other_pictures=0).score(texts("color?", "color?", "color?", "color?"), EXAMPLES)
    assert list(scores.values) == ["answered", "answer_confidence"]
    alone = metric().score(texts("color?"), EXAMPLES[:1])
    assert (
        alone.values["picture_gain"] is None
        and "picture_gain needs answered questions, and two pictures" in alone.notes
    )


def test_batches_change_nothing():
    questions = texts("what color is it?", "which color?", "why?", "color?")
    assert metric(batch_size=1).score(questions, EXAMPLES) == metric().score(questions, EXAMPLES)


def test_a_condition_and_a_picture_that_are_missing_are_named():
    with pytest.raises(DataError) as error:
        metric(condition="level").score(texts("color?"), EXAMPLES[:1])
    assert str(error.value) == "answerable: condition: example 'e0' has no text 'level' among its inputs and facts"
    assert metric(condition="purpose").score(texts("color?"), EXAMPLES[:1]).values["answer_consistency"] == 0
    with pytest.raises(DataError) as error:
        scorer = metric()
        scorer.pictures = lambda examples: {}
        scorer.score(texts("color?"), EXAMPLES[:1])
    assert str(error.value) == "answerable: example 'e0' has no picture; the data set needs raw images (data.images)"


def test_the_condition_of_a_prompt():
    prompts = [("answer", "red"), ("answer", "blue"), ("form", "how many"), ("answer", "red")]
    examples = [
        replace(example, facts={"prompt_kind": kind, "prompt_value": value})
        for example, (kind, value) in zip(EXAMPLES, prompts, strict=True)
    ]
    scores = metric().score(texts(*["what color?"] * 4), examples)
    assert scores.per_example["answer_consistency"] == [100.0, 0.0, None, 100.0]  # p1 is blue, with a confidence of 0.4
    assert scores.values["answer_consistency"] == pytest.approx(200 / 3)


@pytest.mark.slow
def test_a_run_is_scored_by_another_run(tmp_path, no_page):
    answering = small_runs.drawn("predicts")
    answerer = {"type": "answerable", "answerer": str(answering), "step": "answers", "question": "question"}
    steps = {"first": {"inputs": ["caption"], "train": ["backbone"]}}
    recipe = toys.recipe(output=str(tmp_path / "runs"), metrics={"round_trip": answerer}, steps=steps)
    (tmp_path / "toy.toml").write_text(recipe)
    folder = run(load(tmp_path / "toy.toml", installed())[0]).path
    table = (folder / "table.md").read_text()
    assert "answered | answer_confidence | picture_gain" in table
    assert f"answerable: answers by {answering}, step 'answers' (answers chosen)" in table
    scores = read(folder / "steps" / "first")
    assert 0 < scores.values["answer_confidence"] < 50  # one of 47, of a model of random weights
