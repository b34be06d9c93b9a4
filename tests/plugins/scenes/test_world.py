"""How the things of drawn scenes stand to one another."""

from dataclasses import replace

import pytest
from mmgen_scenes import relations
from mmgen_scenes.world import Thing


def thing(x, y=0.5, side=0.1, facing="right", kind="dog"):
    half = side / 2
    return Thing(kind, "red", "big", "grass", "", facing, (x - half, y - half, x + half, y + half))


@pytest.mark.parametrize(
    ("x", "relation", "holds"),
    [
        (0.54, "near", True),
        (0.6, "near", None),
        (0.7, "near", False),
        (0.4, "to the right of", True),
        (0.3, "to the right of", None),
        (0.1, "to the right of", False),
        (0.1, "to the left of", None),
        (0.02, "to the left of", True),
    ],
)
def test_where_people_may_differ_nothing_is_said(x, relation, holds):
    assert relations.related(thing(x), thing(0.2), relation) is holds


def test_the_closest_thing_is_near_and_by_far_the_nearest():
    assert relations.closest([thing(0.2), thing(0.3), thing(0.9)], 0) == 1
    assert relations.closest([thing(0.2), thing(0.3), thing(0.32)], 0) is None  # both are as near
    assert relations.closest([thing(0.1), thing(0.6), thing(0.99)], 0) is None  # nothing is near


def test_the_first_thing_on_the_way():
    dog = thing(0.2)
    assert relations.ahead([dog, thing(0.4), thing(0.8)], 0) == 1
    assert relations.ahead([replace(dog, facing="left"), thing(0.4), thing(0.8)], 0) is None
    assert relations.ahead([dog, thing(0.4), thing(0.42, 0.55)], 0) is None  # both are as far
    assert relations.on_the_way(dog, thing(0.4, 0.5)) is True
    assert relations.on_the_way(dog, thing(0.4, 0.68)) is None
    assert relations.on_the_way(dog, thing(0.22, 0.9)) is False
