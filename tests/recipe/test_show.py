"""A shown recipe has the origin of every value, and can be run again."""

import re
import tomllib
from pathlib import Path

from kit.recipes import REGISTRY
from kit.toys import mmgen_here

from mmgen.recipe.load import load
from mmgen.recipe.show import toml


def test_show_can_be_run_again(recipe):
    shown = mmgen_here(Path(), "show", recipe()).stdout
    lines = {tuple(re.split(r"\s+#\s+", line)) for line in shown.splitlines()}
    assert {("num_hidden_layers = 1", "my.toml:23"), ("epochs = 3", "my.toml:10"), ("seed = 0", "default")} <= lines
    first, _ = load(Path("my.toml"), REGISTRY)
    second, _ = load(recipe(shown, "shown.toml"), REGISTRY)
    assert {**second.identity(), "profile": None} == {**first.identity(), "profile": None}


def test_odd_texts_stay_what_they_are(recipe):
    loaded, layers = load(recipe(), REGISTRY)
    odd = "\x1b[31mred\x07 \U000e0001 'a' \"é\"\n"
    assert tomllib.loads(toml(loaded.model_copy(update={"name": odd}).identity(), layers))["name"] == odd
