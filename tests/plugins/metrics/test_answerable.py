"""The metric answerable: its columns by hand with a stand-in that answers; a run as answerer."""

import pytest
import torch
from kit import small_runs, toys
from kit.refusals import refusal
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


def test_a_condition_that_is_missing_is_named():
    message = refusal(metric(condition="level").score, texts("color?"), EXAMPLES[:1])
    assert message == "answerable: condition: example 'e0' has no text 'level' among its inputs and facts"
    assert metric(condition="purpose").score(texts("color?"), EXAMPLES[:1]).values["answer_consistency"] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "step", "question", "way"),
    [("predicts", "answers", "question", "chosen"), ("writes", "both", "caption", "written")],
)
def test_a_run_is_scored_by_another_run(name, step, question, way, tmp_path, no_page):
    answering = small_runs.drawn(name)
    answerer = {"type": "answerable", "answerer": str(answering), "step": step, "question": question}
    steps = {"first": {"inputs": ["caption"], "train": ["backbone"]}}
    recipe = toys.recipe(output=str(tmp_path / "runs"), metrics={"round_trip": answerer}, steps=steps)
    (tmp_path / "toy.toml").write_text(recipe)
    folder = run(load(tmp_path / "toy.toml", installed())[0]).path
    table = (folder / "table.md").read_text()
    assert "answered | answer_confidence | picture_gain" in table
    assert f"answerable: answers by {answering}, step '{step}' (answers {way})" in table
    scores = read(folder / "steps" / "first")
    assert 0 < scores.values["answer_confidence"] < 50  # of a model of random weights


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"answerer": "/nowhere"}, "answerable: answerer: /nowhere: "),
        ({"step": "answer"}, "answerable: answerer: RUN: step 'answer' has no weights; trained steps: "),
        ({"step": "expressions"}, "answerable: RUN: step 'expressions' reads "),
        (
            {"step": "answers", "question": "image"},
            "answerable: RUN: step 'answers' has no input 'image' for a question; choose from: question",
        ),
    ],
)
def test_answerers_that_cannot_answer_are_named(settings, message):
    folder = str(small_runs.drawn("predicts"))
    scorer = Answerable(**{"answerer": folder, **settings}).build()
    with pytest.raises(DataError) as error:
        scorer.prepare(None, torch.device("cpu"))  # reads no picture
    assert str(error.value).replace(folder, "RUN").startswith(message)
