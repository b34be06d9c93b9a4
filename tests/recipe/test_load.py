"""Recipes are read, saved and read again; every recipe of the project passes; parts on the command line."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from kit.recipes import GOOD, IMAGE, REGISTRY
from kit.refusals import refusal
from kit.toys import mmgen_here
from mmgen_metrics import Answerable, CaptionScores

from mmgen.configs import Config, MetricConfig
from mmgen.errors import RecipeError
from mmgen.recipe.load import from_json, load, select_parts
from mmgen.registry import Registry, Source, installed


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


FROM_RECIPE = {"scores": CaptionScores(meteor=False)}


def select(names=(), sets=(), from_recipe=FROM_RECIPE):
    return select_parts(MetricConfig, from_recipe, names, sets, installed())


def test_without_names_those_of_the_recipe_with_their_settings():
    assert select() == FROM_RECIPE
    assert select(sets=["scores.meteor=true"]) == {"scores": CaptionScores(meteor=True)}


def test_a_required_setting_of_the_recipe_stays():
    round_trip = {"trip": Answerable(answerer="runs/vqa/seed-0")}
    assert select(from_recipe=round_trip) == round_trip
    changed = Answerable(answerer="runs/vqa/seed-0", threshold=0.3)
    assert select(sets=["trip.threshold=0.3"], from_recipe=round_trip) == {"trip": changed}


def test_an_installed_part_has_its_defaults():
    assert select(["captioneval"]) == {"captioneval": CaptionScores()}
    assert [*select(["scores", "diversity", "scores"])] == ["scores", "diversity"]


def test_a_name_that_two_plugins_provide_is_refused_and_listed_once():
    ours = installed()
    scores = ours.get("metric", "captioneval")
    twice = Registry((*ours.parts, replace(scores, source=Source("mine", "mmgen-mine", "0.3"))), ())
    with pytest.raises(RecipeError) as error:
        select_parts(MetricConfig, {}, ["captioneval"], (), twice)
    assert "and mmgen-mine 0.3; rename or uninstall all but one" in str(error.value)
    with pytest.raises(RecipeError) as error:
        select_parts(MetricConfig, {}, ["captionevel"], (), twice)
    assert str(error.value).count("captioneval") == 2  # the suggestion, and the list


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"names": ["scors"]}, "--metric scors: unknown metric; did you mean 'scores'?; choose from: scores, "),
        ({"from_recipe": {}}, "the recipe has no [metrics]; choose with --metric: "),
        ({"sets": ["scores.meteor=7"]}, "--set scores.meteor=7: meteor: must be true or false, not 7"),
        ({"names": ["answerable"]}, "--metric answerable: answerer: is missing"),
        ({"sets": ["other.meteor=true"]}, "other"),
    ],
)
def test_what_cannot_be_chosen(arguments, problem):
    with pytest.raises(RecipeError) as error:
        select(**arguments)
    assert problem in str(error.value)
