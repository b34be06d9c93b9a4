"""The world of drawn scenes: wide, with a small language, and things that hardly hide each other."""

from itertools import combinations

from mmgen_scenes.grammar import words
from mmgen_scenes.world import COLORS, KINDS, MOST_HIDDEN, overlap_share


def test_the_world_is_wide_and_its_language_small(examples):
    things = [thing for example in examples for thing in example.facts["things"]]
    assert len(KINDS) >= 25
    assert {thing["kind"] for thing in things} == set(KINDS)
    assert {thing["color"] for thing in things} == set(COLORS)
    assert {thing["size"] for thing in things} == {"small", "big"}
    assert {thing["place"] for thing in things} == {"sky", "water", "grass", "sand", "snow"}
    texts = [text for example in examples for text in (*example.inputs["caption"], *example.targets)]
    assert len({word for text in texts for word in words(text)}) <= 130


def test_things_hardly_hide_each_other(examples):
    for example in examples:
        boxes = [thing["box"] for thing in example.facts["things"]]
        assert all(0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1 for x0, y0, x1, y1 in boxes)
        assert all(overlap_share(a, b) <= MOST_HIDDEN for a, b in combinations(boxes, 2))
