"""Drawn pairs: a statement is true of two pairs of four, and its words alone do not help."""

from collections import defaultdict

import pytest
from kit.statements import is_true
from mmgen_tasks import ScenePairs

from mmgen.examples import All
from mmgen.testing import DatasetSuite

pytestmark = pytest.mark.slow


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
    assert first.inputs["image"] == All(("test-0-0-img0", "test-0-0-img1"))
    assert data.vocabularies() == {"truth": ("False", "True")} and type(first.labels["truth"]) is bool
    assert len(keys) == 8 * (120 + 1 + 10) and len(data.split("test")) == 80


def test_sizes_do_not_change_earlier_pairs(data):
    fewer = ScenePairs(train_size=2, val_size=1, test_size=1).build()
    assert fewer.split("train") == data.split("train")[:16]


@pytest.mark.parametrize("statements", [1, 3])
def test_the_number_of_statements(statements):
    data = ScenePairs(train_size=4, statements=statements, min_things=4, max_things=4).build()
    assert len(data.split("train")) == 16 * statements
    assert len({example.inputs["statement"] for example in data.split("train")}) == 4 * statements


def test_only_these_forms():
    """Other statements about the same pictures, so that their features are shared."""
    keys = {"train_size": 30, "test_size": 10}
    data, planned = ScenePairs(forms=["both", "two"], **keys).build(), ScenePairs(**keys).build()
    assert [*data.scene_sets("train")[3].scenes] == [*planned.scene_sets("train")[3].scenes]
    for split in ("train", "test"):
        examples = data.split(split)
        statements = {(example.facts["form"], example.inputs["statement"].split()[0]) for example in examples}
        assert statements == {("both", "both"), ("two", "at")}
        assert_true_of_half(examples, 4)


def test_any_two_pictures_of_a_set_make_a_pair():
    """Training statements have more pairs, half of them true, and their truth is that of counting; the pairs of other
    splits, and the first four of training statements, stay what they are."""
    keys = {"train_size": 30, "test_size": 4, "statements": 3}
    data, planned = ScenePairs(pairings=16, **keys).build(), ScenePairs(**keys).build()
    examples = data.split("train")
    assert data.split("test") == planned.split("test") and len(examples) > 2.5 * len(planned.split("train"))
    assert [e for e in examples if int(e.id.split("-")[2]) < 4] == [*planned.split("train")]
    assert_true_of_half(examples, 16)


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
