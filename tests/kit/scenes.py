"""A small data set of drawn scenes; what every painting of a thing has."""

import inspect

import numpy as np
import pytest
from mmgen_scenes import Scenes
from mmgen_scenes.brush import MARGIN, Brush

SMALL = Scenes(train_size=300, val_size=40, test_size=120)


def mark_mentions(text, mentions):
    """A text with numbers in place of its mentions: "what is [2] looking at?"."""
    for start, end, (thing,) in sorted(mentions, reverse=True):
        text = f"{text[:start].removesuffix('the ')}[{thing}]{text[end:]}"
    return text


def painters(module):
    """The painters of a module of things, as parameters."""
    return [
        pytest.param(paint, id=name)
        for name, paint in vars(module).items()
        if inspect.isfunction(paint) and paint.__module__ == module.__name__ and not name.startswith("_")
    ]


def assert_painted(paint):
    """A painting fills its square in one direction at least, and most of it changes with the thing's colour."""
    sheets = []
    for color in ("red", "blue"):
        brush = Brush(color, 96)
        paint(brush)
        sheets.append(np.asarray(brush.sheet).astype(int))
    inside = sheets[0][..., 3] > 0
    rows, columns = inside.any(1).sum(), inside.any(0).sum()
    assert max(rows, columns) > 0.9 * (1 - 2 * MARGIN) * 96, f"{rows} x {columns} of 96 pixels"
    changed = np.abs(sheets[0] - sheets[1]).sum(-1)[inside] > 40
    assert changed.mean() > 0.4, f"{changed.mean():.0%} of the thing has its colour"
