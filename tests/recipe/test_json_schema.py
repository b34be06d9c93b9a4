"""`mmgen schema`: valid recipes fit the schema, invalid ones do not, and it agrees with the models; keys in words."""

import tomllib
from pathlib import Path

import pytest

from mmgen.recipe.json_schema import schema
from mmgen.recipe.tables import Recipe, Step, Training
from mmgen.registry import KINDS, installed

RECIPES = sorted((Path(__file__).resolve().parents[2] / "recipes").glob("*.toml"))
SCHEMA = schema(installed())


def check(text: str) -> list[str]:
    """The places where a TOML text does not fit the schema."""
    jsonschema = pytest.importorskip("jsonschema", reason='jsonschema is not installed; it is in ".[test]"')
    errors = jsonschema.Draft202012Validator(SCHEMA).iter_errors(tomllib.loads(text))
    return sorted(".".join(map(str, error.absolute_path)) for error in errors)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_every_recipe_fits(recipe):
    assert check(recipe.read_text()) == []


@pytest.mark.parametrize(
    "toml, places",
    [
        ("nonsense = 1", [""]),
        ("seed = -1", ["seed"]),
        ('[backbone]\ntype = "bert"\nlayer = 2', ["backbone"]),
        ('[backbone]\ntype = "brt"', ["backbone.type"]),
        ('[inputs.i]\ntype = "regions"\n[inputs.i.extractor]\ntype = "roi"\npool = 99', ["inputs.i.extractor.pool"]),
        ("[steps.one]\ntraining = { epoch = 1 }", ["steps.one.training"]),
        ('[profiles.small.generator]\ntype = "masked"\nmax_tokens = 1', ["profiles.small.generator.max_tokens"]),
        ("[decoding]\nnum_beams = 0", ["decoding.num_beams"]),
        ("[profiles.sample.backbone]\nnum_hidden_layers = 2", []),  # one key of a table
        ('[steps.a]\ndata = [{ type = "scenes", share = 2 }, { type = "table", folder = "x" }]', []),
        ('[steps.a.data]\ntype = "scenes"\nseed = 3', []),
        ('[steps.a]\ndata = [{ type = "scenes", shares = 2 }]', ["steps.a.data"]),
    ],
)
def test_what_is_wrong_is_found_where_it_is(toml, places):
    assert check(toml) == places


def follow(table: dict) -> dict:
    """The definition that a schema refers to."""
    return SCHEMA["$defs"][table["$ref"].removeprefix("#/$defs/")]


def test_every_part_and_every_key_is_there_with_its_description():
    for kind, (_, base) in KINDS.items():
        if not base.in_recipes:
            continue
        handed = SCHEMA["$defs"][base.__name__]["allOf"]
        parts = {case["if"]["properties"]["type"]["const"]: follow(case["then"])["properties"] for case in handed}
        assert parts.keys() == installed().names(kind).keys()
        for name, properties in parts.items():
            fields = installed().get(kind, name).config.model_fields
            assert properties.keys() == fields.keys()
            assert all(name == "type" or properties[name]["description"] == fields[name].description for name in fields)
    assert SCHEMA["properties"].keys() - {"extends", "profiles"} == Recipe.model_fields.keys()
    (step,) = SCHEMA["properties"]["steps"]["patternProperties"].values()
    assert follow(step)["properties"].keys() == Step.model_fields.keys()
    assert follow(follow(step)["properties"]["training"])["properties"].keys() == Training.model_fields.keys()
    assert all("required" not in table for table in SCHEMA["$defs"].values())  # layers are laid over one another
