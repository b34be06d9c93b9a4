"""The tables of a recipe: what follows from the checked values."""

import pytest
from kit import toys

READS = {"inputs": ["caption"], "train": ["backbone"]}
STEPS = {
    "third": {**READS, "start": "second"},
    "first": {**READS, "evaluate": False},
    "second": {**READS, "start": "first"},
    "alone": {**READS, "start": "weights:some/model"},
}


@pytest.fixture
def recipe(tmp_path):
    return toys.loaded(tmp_path, toys.recipe(steps=STEPS))


def test_a_step_comes_after_the_step_it_starts_from(recipe):
    assert recipe.chain("third") == ["first", "second", "third"] and recipe.chain("alone") == ["alone"]
    assert recipe.ordered() == ["first", "second", "third", "alone"]
    assert recipe.ordered(["second"]) == ["first", "second"]
    assert recipe.ordered(["alone", "second"]) == ["alone", "first", "second"]


def test_the_identity_leaves_out_what_changes_no_result(recipe):
    elsewhere = recipe.model_copy(update={"output": "elsewhere", "description": "x", "jobs": 3})
    assert elsewhere.identity() == recipe.identity()
    assert recipe.model_copy(update={"seed": 7}).identity() != recipe.identity()
