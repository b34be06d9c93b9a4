"""A shown recipe can be run again."""

import re
import tomllib
from pathlib import Path

from kit.recipes import REGISTRY
from kit.toys import mmgen_here

from mmgen.recipe.load import load
from mmgen.recipe.show import toml


def test_show_can_be_run_again(recipe):
    shown = mmgen_here(Path(), "show", recipe()).stdout
    assert "# my.toml:23" in shown and "# default" in shown
    first, _ = load(Path("my.toml"), REGISTRY)
    second, _ = load(recipe(shown, "shown.toml"), REGISTRY)
    assert {**second.identity(), "profile": None} == {**first.identity(), "profile": None}


def test_a_text_that_would_steer_a_terminal_is_escaped_and_stays_what_it_is(recipe):
    loaded, layers = load(recipe(), REGISTRY)
    odd = "\x1b[31mred\x1b[2J\x07\u202e \U000e0001 \x7f"
    shown = toml(loaded.model_copy(update={"name": odd}).identity(), layers)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e\U000e0001]", shown) and tomllib.loads(shown)["name"] == odd
