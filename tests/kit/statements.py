"""The truth of drawn statements about two pictures, by counting things: written from the sentences alone."""

import re

from mmgen_scenes.world import COLORS, KINDS

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
