"""The answerer: a trained step of a run that reads a picture and a question."""

import pytest
import torch
from kit import small_runs, toys
from mmgen_metrics import Answerable
from mmgen_metrics.answerer import Answered

from mmgen.errors import DataError
from mmgen.evaluation.score import read
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.runs.run import run


def pictures(examples):
    raise AssertionError("an answerer that cannot answer reads no picture")


def test_the_best_answer_and_those_that_are_none():
    answered = Answered({"unanswerable": 0.6, "red": 0.4})
    assert answered.best(()) == ("unanswerable", 0.6) and answered.best({"unanswerable"}) == ("", 0.0)
    assert Answered({}).best(()) == ("", 0.0)


@pytest.mark.slow
def test_a_model_that_writes_about_a_caption_answers_nothing_by_itself(tmp_path, no_page):
    """A questioner reads a picture and a text too; it is an answerer only if `question` says so."""
    inputs = {"image": {"type": "regions", "extractor": toys.ROI}, "caption": {"type": "text"}}
    steps = {"both": {"inputs": ["image", "caption"], "train": ["backbone"]}}
    recipe = toys.recipe(output=str(tmp_path / "runs"), inputs=inputs, metrics=None, steps=steps)
    (tmp_path / "toy.toml").write_text(recipe)
    folder = run(load(tmp_path / "toy.toml", installed())[0]).path
    with pytest.raises(DataError) as error:
        Answerable(answerer=str(folder)).build().prepare(pictures, torch.device("cpu"))
    assert str(error.value) == (
        f"answerable: {folder}: step 'both' reads image and caption and predicts text; set step to one that reads a "
        "picture and a question and answers with labels or texts, or question to the input that reads the question"
    )
    metric = {"type": "answerable", "answerer": str(folder), "question": "caption"}
    sets = [f'metrics.round_trip.{key}="{value}"' for key, value in metric.items()]
    run(load(tmp_path / "toy.toml", installed(), None, sets)[0])
    scores = read(folder / "steps" / "both")
    assert "(answers written)" in scores.notes[0] and 0 <= scores.values["answer_confidence"] <= 100


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
        scorer.prepare(pictures, torch.device("cpu"))
    assert str(error.value).replace(folder, "RUN").startswith(message)
