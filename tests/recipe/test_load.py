"""Recipes are read, saved and read again; every recipe of the project passes; parts on the command line."""

from dataclasses import replace
from pathlib import Path

import pytest
from kit.recipes import REGISTRY, mistakes
from kit.refusals import refusal
from kit.toys import mmgen_here
from mmgen_metrics import Answerable, CaptionScores

from mmgen.configs import MetricConfig
from mmgen.recipe.load import select_parts
from mmgen.registry import Registry, Source


@pytest.mark.slow
def test_every_recipe_passes_with_every_profile(tmp_path):
    """Without a remark: all of their keys have an effect."""
    recipes = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))
    done = mmgen_here(tmp_path, "check", *recipes)
    assert recipes and (done.returncode, done.stderr) == (0, "")


def test_a_parent_that_cannot_be_read_is_reported_with_the_line_that_names_it(tmp_path):
    (tmp_path / "a.toml").write_text('name = "a"\nextends = "b.toml"\n')
    (line,) = mistakes(tmp_path / "a.toml")
    assert line.startswith(f"{tmp_path}/a.toml:2: extends: {tmp_path}/b.toml: no such recipe; `mmgen init` copies ")
    (tmp_path / "b.toml").symlink_to("b.toml")
    assert "cannot be read: " in mistakes(tmp_path / "b.toml")[0]


MINE = replace(REGISTRY.get("metric", "captioneval"), source=Source("m", "mine", "1"))
TWICE = Registry((*REGISTRY.parts, MINE), ())
FROM_RECIPE = {"scores": CaptionScores(meteor=False), "trip": Answerable(answerer="runs/vqa/seed-0")}


def select(names=(), sets=(), from_recipe=FROM_RECIPE, registry=REGISTRY):
    return select_parts(MetricConfig, from_recipe, names, sets, registry)


def test_parts_of_a_recipe_and_installed_parts_with_their_settings():
    assert select() == FROM_RECIPE
    changed = select(["scores", "trip"], ["scores.meteor=true", "trip.threshold=0.3"])
    assert changed == {
        "scores": CaptionScores(meteor=True),
        "trip": Answerable(answerer="runs/vqa/seed-0", threshold=0.3),
    }
    assert select(["captioneval"]) == {"captioneval": CaptionScores()}
    assert [*select(["scores", "diversity", "scores"])] == ["scores", "diversity"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"sets": ["scores.meteor=7"]}, "--set scores.meteor=7: meteor: must be true or false, not 7"),
        ({"names": ["answerable"]}, "--metric answerable: answerer: is missing"),
        ({"sets": ["other.meteor=true"]}, "--set other.meteor=true: write METRIC.KEY=VALUE; the metrics are: scores, "),
        ({"names": ["captioneval"], "registry": TWICE}, "and mine 1; rename or uninstall all but one"),
    ],
)
def test_what_cannot_be_chosen(arguments, problem):
    assert problem in refusal(select, **arguments)
