"""Drawn statements: counting things gives the truth; forms are equally common."""

import re
from collections import Counter

import pytest
from mmgen_scenes.world import COLORS, KINDS

pytestmark = pytest.mark.slow


NAMES = {name: kind.name for kind in KINDS.values() for name in (kind.name, kind.plural)}


NUMBERS = {"two": 2, "three": 3}


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


def test_forms_of_statements_are_equally_common(data):
    kinds = re.compile(r"\b(" + "|".join(sorted({*NAMES, *COLORS}, key=len)[::-1]) + r")\b")
    forms = Counter(
        kinds.sub("_", re.sub(r"left|right", "side", example.inputs["statement"])).replace(" an ", " a ")
        for example in data.split("train")
        if example.id.split("-")[2] == "0"
    )
    assert len(forms) == 15, forms  # "exactly two" and "exactly three" are one of the fourteen forms
    assert min(forms.values()) > 3 and max(forms.values()) < 45, forms
