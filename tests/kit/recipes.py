"""A valid recipe, and recipes with mistakes."""

from pathlib import Path

import pytest

from mmgen.errors import RecipeError
from mmgen.recipe.load import load
from mmgen.registry import installed

REGISTRY = installed()


GOOD = """\
name = "toy"
profile = "small"
[backbone]
type = "bert"
[inputs.caption]
type = "text"
[generator]
type = "masked"
[training]
epochs = 3
[steps.first]
inputs = ["caption"]
train = ["backbone"]
[steps.second]
inputs = ["caption"]
train = ["backbone"]
start = "first"
[steps.second.training]
learning_rate = 1e-4
[data]
type = "scenes"
[profiles.small.backbone]
num_hidden_layers = 1
[profiles.large.backbone]
num_hidden_layers = 9
"""


def mistakes(path: Path, **options) -> list[str]:
    with pytest.raises(RecipeError) as caught:
        load(path, REGISTRY, **options)
    return str(caught.value).splitlines()


IMAGE = '[inputs.image]\ntype = "regions"\n'
