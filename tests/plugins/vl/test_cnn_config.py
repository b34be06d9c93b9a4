"""The defaults of a timm network's features depend on its weights."""

from typing import Literal

import pytest
from mmgen_vl.cnn_config import CnnConfig


class Cells(CnnConfig):
    type: Literal["cells"] = "cells"


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({}, (0, 3, 192)),
        ({"weights": "pretrained"}, (-1, 1, 448)),
        ({"weights": "r50.safetensors", "level": 2}, (2, 1, 448)),
        ({"level": 0, "pool": 2, "image_size": 64}, (0, 2, 64)),
    ],
)
def test_defaults_depend_on_the_weights(settings, expected):
    assert Cells(**settings).feature_settings() == expected
