"""The sample recipe of matching, `recipes/matching.toml`."""

from pathlib import Path

from mmgen.recipe.load import load
from mmgen.registry import installed

RECIPE = Path(__file__).parents[2] / "recipes/matching.toml"


def test_no_step_before_harder_statements_sees_the_combinations_that_are_left_out():
    recipe, _ = load(RECIPE, installed(), "unseen")
    step, unseen = "truth", set()
    while step != "pretrained":
        settings = recipe.steps[step]
        unseen.add((settings.data or recipe.data).unseen)
        step = settings.start
    assert len(unseen) == 1 and len(unseen.pop()) == 12
