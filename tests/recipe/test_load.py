"""Recipes are read, saved and read again; every recipe of the project passes."""

import json
from pathlib import Path

import pytest
from kit.recipes import GOOD, IMAGE, REGISTRY
from kit.refusals import refusal
from kit.toys import mmgen_here

from mmgen.configs import Config
from mmgen.errors import RecipeError
from mmgen.recipe.load import from_json, load
from mmgen.registry import installed


def test_every_part_is_validated_once(recipe, monkeypatch):
    validated, validate = [], Config.model_validate_json.__func__

    def counted(cls, *values, **options):
        validated.append(cls.__name__)
        return validate(cls, *values, **options)

    path = recipe(GOOD.replace("[generator]", f'{IMAGE}extractor = {{ type = "roi" }}\n[generator]'))
    monkeypatch.setattr(Config, "model_validate_json", classmethod(counted))
    load(path, REGISTRY)
    assert sorted(validated) == ["Bert", "Decoding", "Masked", "Recipe", "Regions", "Roi", "Scenes", "Text"]


def test_the_saved_recipe_is_the_recipe(recipe):
    loaded, _ = load(recipe(), REGISTRY)
    again = from_json(json.dumps(loaded.identity()), REGISTRY, "recipe.json")
    assert again.identity() == loaded.identity()


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[2] / "recipes").glob("*.toml")), ids=lambda path: path.stem
)
def test_every_recipe_passes_with_every_profile(path, tmp_path):
    done = mmgen_here(tmp_path, "check", path)
    assert done.returncode == 0, done.stderr


def test_every_recipe_is_counted():
    """A new or removed recipe must be listed here."""
    assert len(list((Path(__file__).parents[2] / "recipes").glob("*.toml"))) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["inputs=3", "steps=3", "inputs.caption=3", "steps.first=3", "metrics=3"])
def test_a_value_instead_of_a_table_is_reported_once(recipe, setting):
    message = refusal(load, recipe(), installed(), sets=(setting,))
    assert message.startswith(f"--set {setting}: {setting.partition('=')[0]}: must be a table")


@pytest.mark.slow
def test_a_setting_of_several_lines_is_not_several_settings(recipe):
    with pytest.raises(RecipeError, match="write a.b=value"):
        load(recipe(), installed(), sets=("seed=1\noutput='x'",))


@pytest.mark.slow
def test_a_parent_that_cannot_be_read_is_reported_with_the_line_that_names_it(tmp_path):
    (tmp_path / "a.toml").write_text(f'name = "a"\nextends = "{"x" * 300}.toml"\n')
    assert refusal(load, tmp_path / "a.toml", installed()).startswith(f"{tmp_path}/a.toml:2: extends: ")
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    assert "cannot be read: " in refusal(load, tmp_path / "loop.toml", installed())


@pytest.mark.slow
def test_steps_may_follow_one_another_for_long(recipe):
    steps = "".join(
        f'[steps.s{n}]\ninputs = ["caption"]\ntrain = ["backbone"]\nstart = "s{n - 1}"\n' for n in range(1, 1100)
    )
    path = recipe(
        GOOD.replace("[data]", '[steps.s0]\ninputs = ["caption"]\ntrain = ["backbone"]\n' + steps + "[data]", 1)
    )
    assert len(load(path, installed())[0].chain("s1099")) == 1100
