"""Drawn statements, about one scene or a pair of pictures: counting and comparing things gives their truth; words alone
do not."""

import re
from collections import Counter, defaultdict

import pytest
from mmgen_scenes.configs import STATEMENTS
from mmgen_scenes.tasks import ScenePairs, SceneStatements
from mmgen_scenes.tasks_statements import WRITERS
from mmgen_scenes.world import COLORS, KINDS, SORT

from mmgen.testing import DatasetSuite

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pairs():
    return ScenePairs(train_size=120, val_size=1, test_size=10).build()


@pytest.fixture(scope="module")
def single():
    return SceneStatements(train_size=150).build().split("train")


class TestScenePairs(DatasetSuite):
    def config(self):
        return ScenePairs(train_size=2, val_size=1, test_size=1, image_size=64)


class TestSceneStatements(DatasetSuite):
    def config(self):
        return SceneStatements(train_size=4, val_size=1, test_size=1, image_size=64)


def grouped(examples):
    groups = defaultdict(list)
    for example in examples:
        groups[example.facts["group"]].append(example)
    return groups


NAMES = {name: kind.name for kind in KINDS.values() for name in (kind.name, kind.plural)}
NUMBERS = {"two": 2, "three": 3}


def count(words, things):
    """How many of the things fit the words, such as "a red car" or "cars"."""
    *_, noun = words = words.split()
    color = [word for word in words if word in COLORS]
    return sum(thing["kind"] == NAMES[noun] and color in ([], [thing["color"]]) for thing in things)


def is_true(statement, left, right):
    """Whether a statement about two pictures is true, by counting their things: written from the sentences alone."""
    both = [left, right]

    def fullmatch(pattern):
        return re.fullmatch(pattern.replace("_", r"((?:an? )?(?:\w+ )?\w+)"), statement)

    if match := fullmatch("both pictures show _"):
        return all(count(match[1], things) for things in both)
    if match := fullmatch("neither picture shows _"):
        return not any(count(match[1], things) for things in both)
    if match := fullmatch("exactly one picture shows _ and _"):
        return sum(count(match[1], things) > 0 and count(match[2], things) > 0 for things in both) == 1
    if match := fullmatch("exactly one picture shows _"):
        return sum(count(match[1], things) > 0 for things in both) == 1
    if match := fullmatch("at least one picture shows two _"):
        return any(count(match[1], things) == 2 for things in both)
    if match := fullmatch(r"there are exactly (two|three) _ in the two pictures"):
        return sum(count(match[2], things) for things in both) == NUMBERS[match[1]]
    if match := fullmatch("there are more _ in the (left|right) picture than in the (?:left|right) picture"):
        more, fewer = both if match[2] == "left" else both[::-1]
        return count(match[1], more) > count(match[1], fewer)
    if match := fullmatch("there are as many _ in the left picture as in the right picture"):
        assert count(match[1], left + right), "people may differ about none and none"
        return count(match[1], left) == count(match[1], right)
    if match := fullmatch("the (left|right) picture shows _ and the (?:left|right) picture shows _"):
        first, second = both if match[1] == "left" else both[::-1]
        return count(match[2], first) > 0 and count(match[3], second) > 0
    if match := fullmatch("the (left|right) picture shows _"):
        return count(match[2], left if match[1] == "left" else right) > 0
    match = fullmatch("one picture shows _ and the other picture shows _")
    return any(count(match[1], a) and count(match[2], b) for a, b in (both, both[::-1]))


def is_true_of_scene(statement, things):
    if match := re.fullmatch("the picture shows exactly (one|two|three) (.*)", statement):
        return count(match[2], things) == {"one": 1, **NUMBERS}[match[1]]
    if match := re.fullmatch("the picture shows (an? .*) and (an? .*)", statement):
        return all(count(words, things) for words in match.groups())
    if match := re.fullmatch("the picture shows (an? .*)", statement):
        return count(match[1], things) > 0
    match = re.fullmatch("the (.*) is to the (left|right) of the (.*)", statement)
    a, b = (next(thing["box"] for thing in things if thing["kind"] == kind) for kind in (match[1], match[3]))
    return (a[0] + a[2] < b[0] + b[2]) == (match[2] == "left")


def test_counting_and_comparing_gives_the_truth(single, pairs):
    for example in single:
        assert is_true_of_scene(example.inputs["statement"], example.facts["things"]) == example.labels["truth"]
    for example in pairs.split("train"):
        assert is_true(example.inputs["statement"], *example.facts["things"]) == example.labels["truth"], example.id
    for example in [*single, *pairs.split("train")]:
        assert not re.search(r"\ban [^aeiou]|\ba [aeiou]", example.inputs["statement"])


def test_a_statement_is_true_of_two_pairs_and_false_of_two(pairs):
    """Without the pictures, a model is right half the time, and never for all four pairs of a statement."""
    groups = grouped(pairs.split("train"))
    assert len(groups) == 240
    for examples in groups.values():
        assert len(examples) == 4 and sum(example.labels["truth"] for example in examples) == 2
        assert len({example.inputs["statement"] for example in examples}) == 1
        assert len({example.inputs["image"] for example in examples}) == 4
    forms = Counter(example.facts["form"] for example in pairs.split("train"))
    assert {*forms} == {*STATEMENTS} and max(forms.values()) < 4 * min(forms.values()), forms


def test_more_pairs_in_training_of_these_forms():
    data = ScenePairs(train_size=10, test_size=3, forms=["both", "two"], pairings=16).build()
    for split, most in (("train", 16), ("test", 4)):
        assert {example.facts["form"] for example in data.split(split)} == {"both", "two"}
        for examples in grouped(data.split(split)).values():
            assert 4 <= len(examples) <= most and 2 * sum(e.labels["truth"] for e in examples) == len(examples)
            assert all(is_true(e.inputs["statement"], *e.facts["things"]) == e.labels["truth"] for e in examples)
    every = ScenePairs(train_size=10, test_size=3, pairings=16).build()
    pictures, theirs = ({picture.key: picture.boxes for picture in drawn.pictures()} for drawn in (every, data))
    assert theirs and all(theirs[key] == pictures[key] for key in theirs.keys() & pictures.keys())


def test_a_true_and_a_false_statement_of_every_form(single):
    def letters(statement):
        return sorted(statement.replace(" an ", " a "))

    assert {example.facts["form"] for example in single} == {*WRITERS}
    for right, wrong in grouped(single).values():
        assert (right.labels["truth"], wrong.labels["truth"]) == (True, False)
        statements = right.inputs["statement"], wrong.inputs["statement"]
        assert not right.facts["form"].startswith("swapped") or letters(statements[0]) == letters(statements[1])
        if right.facts["form"] == "similar kind":
            assert SORT[statements[1].split()[-1]] in {SORT[thing["kind"]] for thing in right.facts["things"]}
