"""Drawn pairs: a statement is true of two pairs of four, and its words alone do not help."""

import re
from collections import Counter, defaultdict

import pytest
from mmgen_scenes.world import COLORS, KINDS
from mmgen_tasks import ScenePairs

from mmgen.tensors import All
from mmgen.testing import DatasetSuite

pytestmark = pytest.mark.slow

NAMES = {name: kind.name for kind in KINDS.values() for name in (kind.name, kind.plural)}
NUMBERS = {"two": 2, "three": 3}


class TestScenePairs(DatasetSuite):
    def config(self):
        return ScenePairs(train_size=2, val_size=1, test_size=1, image_size=64)


@pytest.fixture(scope="module")
def data():
    return ScenePairs(train_size=120, val_size=1, test_size=10).build()


def count(words, things):
    """How many of the things fit the words, such as "a red car" or "cars"."""
    *_, noun = words = words.split()
    color = [word for word in words if word in COLORS]
    return sum(thing["kind"] == NAMES[noun] and color in ([], [thing["color"]]) for thing in things)


def is_true(statement, left, right):
    """Whether a statement is true, by counting the things of both pictures."""
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


def test_counting_things_gives_the_truth(data):
    for example in data.split("train"):
        assert is_true(example.inputs["statement"], *example.facts["things"]) == example.labels["truth"], example.id
        assert not re.search(r"\ban [^aeiou]|\ba [aeiou]", example.inputs["statement"])


def test_a_statement_is_true_of_two_pairs_and_false_of_two(data):
    """Without the pictures, a model is right half the time, and never for all four pairs of a statement."""
    groups = defaultdict(list)
    for example in data.split("train"):
        groups[example.facts["group"]].append(example)
    assert len(groups) == 240
    for group, examples in groups.items():
        assert len(examples) == 4 and sum(example.labels["truth"] for example in examples) == 2
        assert len({example.inputs["statement"] for example in examples}) == 1
        assert len({example.inputs["image"] for example in examples}) == 4
        split, number, _, statement = group.split("-")
        assert [example.id for example in examples] == [f"{split}-{number}-{pair}-{statement}" for pair in range(4)]


def test_names_follow_nlvr2(data):
    first, keys = data.split("test")[0], {picture.key for picture in data.pictures()}
    assert first.id == "test-0-0-0" and first.facts["group"] == "test-0--0"
    assert first.inputs["image"] == All(("test-0-0-img0", "test-0-0-img1"))
    assert data.vocabularies() == {"truth": ("False", "True")} and type(first.labels["truth"]) is bool
    assert len(keys) == 8 * (120 + 1 + 10) and len(data.split("test")) == 80


def test_forms_of_statements_are_equally_common(data):
    kinds = re.compile(r"\b(" + "|".join(sorted({*NAMES, *COLORS}, key=len)[::-1]) + r")\b")
    forms = Counter(
        kinds.sub("_", re.sub(r"left|right", "side", example.inputs["statement"])).replace(" an ", " a ")
        for example in data.split("train")
        if example.id.split("-")[2] == "0"
    )
    assert len(forms) == 15, forms  # "exactly two" and "exactly three" are one of the fourteen forms
    assert min(forms.values()) > 3 and max(forms.values()) < 45, forms


def test_sizes_do_not_change_earlier_pairs(data):
    fewer = ScenePairs(train_size=2, val_size=1, test_size=1).build()
    assert fewer.split("train") == data.split("train")[:16]


@pytest.mark.parametrize("statements", [1, 3])
def test_the_number_of_statements(statements):
    data = ScenePairs(train_size=4, statements=statements, min_things=4, max_things=4).build()
    assert len(data.split("train")) == 16 * statements
    assert len({example.inputs["statement"] for example in data.split("train")}) == 4 * statements
