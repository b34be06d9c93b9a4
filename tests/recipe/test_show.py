"""A shown recipe can be run again."""

from pathlib import Path

from kit.recipes import REGISTRY
from kit.toys import mmgen_here

from mmgen.recipe.load import load


def test_show_can_be_run_again(recipe):
    shown = mmgen_here(Path(), "show", recipe()).stdout
    assert "# my.toml:23" in shown and "# default" in shown
    first, _ = load(Path("my.toml"), REGISTRY)
    second, _ = load(recipe(shown, "shown.toml"), REGISTRY)
    assert {**second.identity(), "profile": None} == {**first.identity(), "profile": None}
