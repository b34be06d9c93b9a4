"""Metrics and probes named on the command line: those of the recipe, or installed ones."""

from dataclasses import replace

import pytest
from mmgen_answerable import Answerable
from mmgen_captioneval import CaptionScores

from mmgen.configs import MetricConfig
from mmgen.errors import RecipeError
from mmgen.recipe.select_parts import select_parts
from mmgen.registry import Registry, Source, installed

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
    assert "the metric 'captioneval' is provided by mmgen" in (said := str(error.value)) and "mmgen-mine 0.3" in said
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
