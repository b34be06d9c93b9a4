"""Which step of a run answers if none is named: never merely the last."""

import shutil

import pytest
from kit import small_runs, toys
from PIL import Image

from mmgen.errors import DataError, RecipeError
from mmgen.evaluation.score import write_scores
from mmgen.examples import Scores
from mmgen.inference.best_step import best_step
from mmgen.inference.load import load
from mmgen.storage.run_folder import RunFolder

READS = {"words": ["caption"], "both": ["image", "caption"], "again": ["image", "caption"], "last": ["image"]}
STEPS = {name: {"inputs": reads, "train": ["backbone"]} for name, reads in READS.items()}
STEPS["both"]["start"] = "words"
METRICS = {"diversity": {"type": "diversity"}}
INPUTS = {"image": {"type": "regions", "features": "x.h5"}, "caption": {"type": "text"}}


@pytest.fixture
def chosen(tmp_path):
    """A function: the step that is chosen among `candidates`, of a run with these scores by step."""

    def choose(scores, candidates=tuple(READS), fitting=None, **keys):
        recipe = toys.loaded(tmp_path, toys.recipe(inputs=INPUTS, steps=STEPS, metrics=METRICS, **keys))
        folder = RunFolder(tmp_path / "run")
        shutil.rmtree(folder.path, ignore_errors=True)
        for name, values in scores.items():
            folder.step(name).mkdir(parents=True)
            write_scores(folder.step(name), Scores(values))
        step = best_step(recipe, folder, candidates, fitting)
        return step.name, step.reason

    return choose


def test_the_best_step_by_the_first_metric_answers(chosen):
    scores = {"words": {"a": 1.0, "b": 9}, "both": {"a": 3.0, "b": 2}, "again": {"a": 2.0, "b": 3}, "last": {"a": 0.5}}
    assert chosen(scores) == ("both", "the best by a (3.00) of 4 steps")
    assert chosen(scores, ["both", "again"], "again") == ("both", "the best by a (3.00) of 2 steps")
    assert chosen(scores, ["last"]) == ("last", "")


def test_a_metric_whose_lowest_value_is_the_best(chosen):
    scores = {"words": {"self-BLEU": 30.0}, "again": {"self-BLEU": 20.0}, "last": {"self-BLEU": 40.0}}
    assert chosen(scores, ["words", "again", "last"])[0] == "again"


def test_a_score_that_one_step_lacks_is_not_compared(chosen):
    scores = {"both": {"METEOR": None, "CIDEr": 2.0}, "again": {"METEOR": 9.0, "CIDEr": 1.0}}
    assert chosen(scores, ["both", "again"])[0] == "both"
    scores |= {"last": {"CIDEr": 3.0}}
    assert chosen(scores) == ("last", "the best by CIDEr (3.00) of 3 steps")
    assert chosen({"words": {"CIDEr": 2.0}}, ["both", "words"]) == ("words", "the best by CIDEr (2.00) of 1 steps")


def test_without_scores_the_step_that_starts_from_most_steps_answers_and_says_so(chosen):
    why = "which starts from most steps, since 4 steps have no scores to compare"
    assert chosen({}) == ("both", why)


def test_the_recipe_may_name_the_step(chosen):
    scores = {"both": {"a": 3.0}, "again": {"a": 2.0}}
    assert chosen(scores, ["both", "again"], default_step="again") == ("again", "the recipe's default_step")
    assert chosen(scores, ["both", "again"], default_step="words") == (
        "both",
        "the best by a (3.00) of 2 steps",
    )
    with pytest.raises(RecipeError, match=r"default_step: unknown name 'bth'; did you mean 'both'\?; choose from: wo"):
        chosen({}, default_step="bth")


@pytest.mark.slow
def test_the_best_step_for_the_inputs_of_a_call_answers_if_none_was_named(caplog):
    """Which step is best is known when the inputs are."""
    place, blank = small_runs.drawn("writes"), Image.new("RGB", (64, 64))
    model, words, both = load(place, dtype="float16"), load(place, "words"), load(place, "both")
    assert model.step == "both" and "step 'words' answers" not in caplog.text
    pictured = {"picture": blank, "caption": "a red ball"}
    assert model.ask(pictured).value == both.ask(pictured).value
    alone = words.ask({"caption": "a ball"}).value
    assert [answer.value for answer in model.predict_all([{"caption": "a ball"}] * 2)] == [alone] * 2
    assert caplog.text.count(f"{place}: step 'words', reads caption, gives text> answers") == 1
    with pytest.raises(DataError, match="^query 1: 'caption' is missing: step 'both' reads image and caption; add --"):
        model.ask(blank)
