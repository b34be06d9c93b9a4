"""The tables of a recipe: what follows from the checked values."""

import pytest
from kit import toys

from mmgen.errors import RecipeError
from mmgen.recipe.load import load
from mmgen.registry import installed


@pytest.fixture
def recipe(tmp_path):
    (tmp_path / "toy.toml").write_text(
        toys.recipe(
            steps={
                "third": {"inputs": ["caption"], "train": ["backbone"], "start": "second"},
                "first": {"inputs": ["caption"], "train": ["backbone"], "evaluate": False},
                "second": {"inputs": ["caption"], "train": ["backbone"], "start": "first"},
                "alone": {"inputs": ["caption"], "train": ["backbone"], "start": "weights:some/model"},
            }
        )
    )
    return load(tmp_path / "toy.toml", installed())[0]


def test_a_step_comes_after_the_step_it_starts_from(recipe):
    assert recipe.chain("third") == ["first", "second", "third"] and recipe.chain("alone") == ["alone"]
    assert recipe.ordered() == ["first", "second", "third", "alone"]
    assert recipe.ordered(["second"]) == ["first", "second"]
    assert recipe.ordered(["alone", "second"]) == ["alone", "first", "second"]


def test_where_a_step_starts(recipe):
    assert recipe.steps["second"].before == "first" and recipe.steps["second"].weights is None
    assert recipe.steps["alone"].before is None and recipe.steps["alone"].weights == "some/model"
    assert recipe.steps["first"].before is None and recipe.steps["first"].weights is None


def test_a_step_of_the_generator_writes_texts(recipe):
    assert recipe.predicts("second") == ("generator", "text") and recipe.makes_texts("second")
    assert recipe.writes("second") and not recipe.writes("first")  # it is not evaluated
    assert recipe.judging("second").keys() == recipe.metrics.keys()


def test_an_unknown_step(recipe):
    recipe.check_steps(["first"])
    with pytest.raises(RecipeError) as error:
        recipe.check_steps(["frist"])
    assert str(error.value) == (
        "--step: unknown name 'frist'; did you mean 'first'?; choose from: third, first, second, alone"
    )


def test_the_identity_leaves_out_what_changes_no_result(recipe):
    elsewhere = recipe.model_copy(update={"output": "elsewhere", "description": "x", "jobs": 3})
    assert elsewhere.identity() == recipe.identity()
    assert recipe.model_copy(update={"seed": 7}).identity() != recipe.identity()
