"""An export as a predictor: it has no data, and its mistakes are not those of --set."""

import tomllib
from pathlib import Path

import pytest
from kit import toys

from mmgen.errors import DataError, RecipeError, RunError
from mmgen.inference.load_export import NoData, recipe_of_export
from mmgen.recipe.tables import GENERATOR
from mmgen.registry import installed


def test_an_export_has_no_data():
    with pytest.raises(DataError) as error:
        NoData().build()
    assert str(error.value) == "an export has no data; name a recipe with data: --data RECIPE"


def recipe_of(sets, **changes):
    steps = {"words": {"inputs": ["caption"], "train": ["backbone"]}}
    tables = tomllib.loads(toys.recipe(inputs={"caption": {"type": "text"}}, steps=steps))
    config = {**tables, "step": "words", "step_inputs": ["caption"], "step_objectives": [GENERATOR], **changes}
    return recipe_of_export(config, Path("config.json"), installed(), sets)


def test_a_mistake_of_an_override_is_not_damage():
    """Also if the message shows the override in other letters, as those that would change a terminal."""
    with pytest.raises(RecipeError) as error:
        recipe_of(['decoding.num_beams="\u202e"'])
    assert str(error.value) == (
        '--set decoding.num_beams="\\u202e": decoding.num_beams: must be a whole number, not "\\u202e"'
    )
    with pytest.raises(RunError) as damage:
        recipe_of(["decoding.num_beams=2"], decoding={"num_beams": 0})
    assert str(damage.value) == (
        "config.json: decoding.num_beams: must be at least 1, not 0; the export is damaged, or was written with "
        "another version of a plugin"
    )
    assert recipe_of(["decoding.num_beams=2"]).decoding.num_beams == 2
