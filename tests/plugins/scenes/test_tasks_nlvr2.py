"""Drawn pairs: a statement is true of two pairs of four, and its words alone do not help."""

import re
from collections import Counter, defaultdict

import pytest
from kit.statements import is_true
from mmgen_scenes.configs import STATEMENTS
from mmgen_scenes.tasks import ScenePairs

from mmgen.examples import All
from mmgen.testing import DatasetSuite

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data():
    return ScenePairs(train_size=120, val_size=1, test_size=10).build()


class TestScenePairs(DatasetSuite):
    def config(self):
        return ScenePairs(train_size=2, val_size=1, test_size=1, image_size=64)


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
    assert {*first.inputs["image"].values} <= keys and type(first.inputs["image"]) is All
    assert data.vocabularies() == {"truth": ("False", "True")} and type(first.labels["truth"]) is bool
    assert 4 * 131 < len(keys) <= 8 * 131 and len(data.split("test")) == 80


def test_sizes_do_not_change_earlier_pairs(data):
    fewer = ScenePairs(train_size=2, val_size=1, test_size=1).build()
    assert fewer.split("train") == data.split("train")[:16]


@pytest.mark.parametrize("statements", [1, 3])
def test_the_number_of_statements(statements):
    data = ScenePairs(train_size=4, statements=statements, min_things=4, max_things=4).build()
    assert len(data.split("train")) == 16 * statements
    assert len({example.inputs["statement"] for example in data.split("train")}) == 4 * statements


def assert_true_of_half(examples, most):
    """Every statement stands with different pairs of pictures, at most `most`, and counting says of half that it is
    true."""
    groups = defaultdict(list)
    for example in examples:
        groups[example.facts["group"]].append(example)
        assert is_true(example.inputs["statement"], *example.facts["things"]) == example.labels["truth"], example.id
    for group in groups.values():
        pairs = [example.shown("image") for example in group]
        assert len({*pairs}) == len(pairs) <= most and all(left != right for left, right in pairs)
        assert sum(example.labels["truth"] for example in group) == len(group) / 2


def test_forms_are_equally_common_and_counting_gives_the_truth(data):
    forms = Counter(example.facts["form"] for example in data.split("train"))
    assert {*forms} == {*STATEMENTS} and max(forms.values()) < 4 * min(forms.values()), forms
    for example in data.split("train"):
        assert is_true(example.inputs["statement"], *example.facts["things"]) == example.labels["truth"], example.id
        assert not re.search(r"\ban [^aeiou]|\ba [aeiou]", example.inputs["statement"])


def test_more_pairs_in_training_of_these_forms():
    data = ScenePairs(train_size=10, test_size=3, forms=["both", "two"], pairings=16).build()
    for split, most in (("train", 16), ("test", 4)):
        groups = defaultdict(list)
        for example in data.split(split):
            groups[example.facts["group"]].append(example)
        assert {example.facts["form"] for example in data.split(split)} == {"both", "two"}
        for examples in groups.values():
            assert 4 <= len(examples) <= most and 2 * sum(e.labels["truth"] for e in examples) == len(examples)
            assert all(is_true(e.inputs["statement"], *e.facts["things"]) == e.labels["truth"] for e in examples)
    every = ScenePairs(train_size=10, test_size=3, pairings=16).build()
    pictures, theirs = ({picture.key: picture.boxes for picture in drawn.pictures()} for drawn in (every, data))
    assert theirs and all(theirs[key] == pictures[key] for key in theirs.keys() & pictures.keys())
