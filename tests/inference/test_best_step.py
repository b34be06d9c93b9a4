"""Which step of a run answers if none is named: never merely the last."""

import json
import shutil

import pytest
from click.testing import CliRunner
from kit import small_runs, toys
from PIL import Image

from mmgen.cli import main
from mmgen.errors import RecipeError
from mmgen.inference.best_step import best_step
from mmgen.inference.load import load as load_model
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.storage.run_folder import RunFolder

READS = {"words": ["caption"], "both": ["image", "caption"], "again": ["image", "caption"], "last": ["image"]}


@pytest.fixture
def chosen(tmp_path):
    """A function: the step that is chosen among `candidates`, of a run with these scores by step."""

    def choose(scores, candidates=tuple(READS), fitting=None, **keys):
        steps = {name: {"inputs": reads, "train": ["backbone"]} for name, reads in READS.items()}
        steps["both"]["start"] = "words"
        inputs = {"image": {"type": "regions", "features": "x.h5"}, "caption": {"type": "text"}}
        metrics = {"diversity": {"type": "diversity"}}
        (tmp_path / "toy.toml").write_text(toys.recipe(inputs=inputs, steps=steps, metrics=metrics, **keys))
        recipe, folder = load(tmp_path / "toy.toml", installed())[0], RunFolder(tmp_path / "run")
        shutil.rmtree(folder.path, ignore_errors=True)
        for name, values in scores.items():
            folder.step(name).mkdir(parents=True)
            saved = {"values": values, "per_example": {}, "notes": []}
            (folder.step(name) / "scores.json").write_text(json.dumps(saved) if values else "{")
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
    assert chosen({}) == chosen({"last": None}) == ("both", why)  # not scored yet, or damaged


def test_the_recipe_may_name_the_step(chosen):
    scores = {"both": {"a": 3.0}, "again": {"a": 2.0}}
    assert chosen(scores, ["both", "again"], default_step="again") == ("again", "the recipe's default_step")
    assert chosen(scores, ["both", "again"], default_step="words") == (
        "both",
        "the best by a (3.00) of 2 steps",
    )
    with pytest.raises(RecipeError, match=r"default_step: unknown name 'bth'; did you mean 'both'\?; choose from: wo"):
        chosen({}, default_step="bth")


@pytest.fixture
def run(tmp_path):
    """A run whose last step repeats its best one, with lower scores."""
    shutil.copytree(small_runs.drawn("writes"), tmp_path / "run")
    recipe = json.loads((tmp_path / "run/recipe.json").read_text())
    recipe["steps"]["scratch"] = {**recipe["steps"]["both"], "start": "pretrained"}
    (tmp_path / "run/recipe.json").write_text(json.dumps(recipe))
    shutil.copytree(tmp_path / "run/steps/both", tmp_path / "run/steps/scratch")
    for step, value in {"words": 10.0, "both": 30.0, "scratch": 20.0}.items():
        scores = {"values": {"relevance": value}, "per_example": {}, "notes": []}
        (tmp_path / "run/steps" / step / "scores.json").write_text(json.dumps(scores))
    return tmp_path / "run"


def test_the_last_step_of_a_run_does_not_answer_for_being_the_last(run, tmp_path):
    Image.new("RGB", (64, 64), "red").save(tmp_path / "red.png")
    done = CliRunner().invoke(main, ["generate", str(run), str(tmp_path / "red.png"), "--caption", "a red dog"])
    best = "the best by relevance (30.00) of"
    assert f"written by step 'both', {best} 2 steps; it reads image and caption" in done.output
    words = CliRunner().invoke(main, ["generate", str(run), "--caption", "a red dog"])
    assert "written by step 'words', which reads caption" in words.output
    predictor = load_model(run)
    assert predictor.step == "both" and f"step 'both', {best} 3 steps, reads" in repr(predictor)
    assert repr(predictor) in CliRunner().invoke(main, ["info", str(run)]).output
    exported = CliRunner().invoke(main, ["export", str(run), str(tmp_path / "out"), "--without-extractor"])
    assert "step 'both'" in exported.output and load_model(tmp_path / "out").step == "both"
