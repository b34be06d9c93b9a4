"""Drawn expressions and phrases, and their boxes."""

import math
import re
from collections import Counter

import pytest
from mmgen_scenes.tasks import SceneExpressions, ScenePhrases
from mmgen_scenes.world import COLORS, KINDS, SIZES, SORTS

from mmgen.testing import DatasetSuite

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def expressions():
    return SceneExpressions(train_size=400, val_size=1, test_size=1).build()


class TestSceneExpressions(DatasetSuite):
    def config(self):
        return SceneExpressions(train_size=8, val_size=2, test_size=2, image_size=64)


def test_candidate_boxes_are_those_of_the_things(expressions):
    """In random order. Naive Bayes on words and the shapes and places of boxes, trained on 4,000 expressions, is right
    46 times in 100; among 36 proposals it is right 20 times."""
    pictures = {picture.key: picture for picture, _ in zip(expressions.pictures(), range(400), strict=False)}
    places = Counter()
    for example in expressions.split("train"):
        boxes = pictures[example.inputs["image"]].boxes
        assert sorted(boxes) == sorted(tuple(thing["box"]) for thing in example.facts["things"])
        places[boxes.index(example.labels["box"])] += 1
    assert max(places[i] for i in range(5)) < 1.5 * min(places[i] for i in range(5))


EXPRESSION = re.compile(
    rf"(?:({'|'.join(SIZES)}) )?(?:({'|'.join(COLORS)}) )?({'|'.join(KINDS)})(?: near the ({'|'.join(KINDS)}))?"
)


def distance(a, b):
    (x0, y0, x1, y1), (u0, v0, u1, v1) = a["box"], b["box"]
    return math.hypot(x0 + x1 - u0 - u1, y0 + y1 - v0 - v1) / 2


def find_things(text, things, far=0.44):
    """Positions of the things that an expression might refer to, by its words. `far`: the distance that is not near."""
    size, color, kind, near = EXPRESSION.fullmatch(text).groups()
    neighbours = [thing for thing in things if thing["kind"] == near]
    assert not near or len(neighbours) == 1
    return [
        i
        for i, thing in enumerate(things)
        if thing["kind"] == kind
        and size in (None, thing["size"])
        and color in (None, thing["color"])
        and (not near or distance(thing, neighbours[0]) < far)
    ]


def true_expressions(thing, things):
    """Every expression that is true of a thing, near another thing or not, as text."""
    kinds = Counter(item["kind"] for item in things)
    for near in (None, *(item for item in things if kinds[item["kind"]] == 1 and item is not thing)):
        if near is not None and distance(thing, near) > 0.35:
            continue
        for size in ("", thing["size"]):
            for color in ("", thing["color"]):
                yield " ".join(filter(None, (size, color, thing["kind"], near and f"near the {near['kind']}")))


def test_an_expression_fits_one_thing_and_is_the_shortest(expressions):
    for example in expressions.split("train"):
        text, things, thing = example.inputs["expression"], example.facts["things"], example.facts["thing"]
        assert find_things(text, things) == [thing], text
        assert example.labels == {"box": tuple(things[thing]["box"])}
        for shorter_text in true_expressions(things[thing], things):
            if len(shorter_text.split()) < len(text.split()):
                assert len(find_things(shorter_text, things, far=0.46)) > 1, (text, shorter_text)


class TestScenePhrases(DatasetSuite):
    def config(self):
        return ScenePhrases(train_size=8, val_size=2, test_size=2, image_size=64)


@pytest.fixture(scope="module")
def phrases():
    return ScenePhrases(train_size=200, val_size=1, test_size=100).build()


def test_a_phrase_is_a_noun_phrase_with_a_box_around_all_its_things(phrases):
    names = {name: kind.name for kind in KINDS.values() for name in (kind.name, kind.plural)}
    several = 0
    for example in [*phrases.split("train"), *phrases.split("test")]:
        for start, end, box in example.labels["phrases"]:
            article, *adjectives, noun = example.inputs["caption"][start:end].split()
            things = [thing for thing in example.facts["things"] if thing["kind"] == names[noun]]
            assert (article, noun in KINDS) in (("a", True), ("an", True), ("two", False), ("three", False))
            assert all({*adjectives} <= {thing["color"], thing["size"]} for thing in things)
            corners = list(zip(*(thing["box"] for thing in things), strict=True))
            assert box == (min(corners[0]), min(corners[1]), max(corners[2]), max(corners[3]))
            assert {"two": 2, "three": 3}.get(article, 1) == len(things)
            assert "type" not in example.facts or names[noun] in SORTS[example.facts["type"]]
            several += len(things) > 1
    assert several > 50


def test_the_split_to_evaluate_has_one_phrase_per_example(phrases):
    assert all(len(example.labels["phrases"]) == 2 for example in phrases.split("train"))
    assert all(len(example.labels["phrases"]) == 1 for example in phrases.split("test"))
