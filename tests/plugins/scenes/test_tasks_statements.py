"""Statements about one scene: counting and comparing things gives their truth; words alone do not."""

import re
from collections import Counter, defaultdict

import pytest
from kit.statements import NUMBERS, count
from mmgen_scenes import Scenes
from mmgen_scenes.tasks import SceneStatements
from mmgen_scenes.tasks_statements import WRITERS, similar_kinds
from mmgen_scenes.world import SORT

from mmgen.testing import DatasetSuite

pytestmark = pytest.mark.slow


class TestSceneStatements(DatasetSuite):
    def config(self):
        return SceneStatements(train_size=4, val_size=1, test_size=1, image_size=64)


@pytest.fixture(scope="module")
def examples():
    return SceneStatements(train_size=150).build().split("train")


def is_true(statement, things):
    if match := re.fullmatch("the picture shows exactly (one|two|three) (.*)", statement):
        return count(match[2], things) == {"one": 1, **NUMBERS}[match[1]]
    if match := re.fullmatch("the picture shows (an? .*) and (an? .*)", statement):
        return all(count(words, things) for words in match.groups())
    if match := re.fullmatch("the picture shows (an? .*)", statement):
        return count(match[1], things) > 0
    match = re.fullmatch("the (.*) is to the (left|right) of the (.*)", statement)
    a, b = (next(thing["box"] for thing in things if thing["kind"] == kind) for kind in (match[1], match[3]))
    return (a[0] + a[2] < b[0] + b[2]) == (match[2] == "left")


def test_counting_and_comparing_gives_the_truth(examples):
    for example in examples:
        statement = example.inputs["statement"]
        assert is_true(statement, example.facts["things"]) == example.labels["truth"], example.id
        assert not re.search(r"\ban [^aeiou]|\ba [aeiou]", statement)


def test_a_true_and_a_false_statement_of_every_form(examples):
    groups = defaultdict(list)
    for example in examples:
        groups[example.facts["group"]].append(example)
    assert {example.facts["form"] for example in examples} == {*WRITERS}
    for right, wrong in groups.values():
        assert (right.labels["truth"], wrong.labels["truth"]) == (True, False)
        if right.facts["form"].startswith("swapped"):
            assert Counter(re.findall(r"\w+", right.inputs["statement"].replace(" an ", " a "))) == Counter(
                re.findall(r"\w+", wrong.inputs["statement"].replace(" an ", " a "))
            )
        if right.facts["form"] == "similar kind":
            sorts = {SORT[thing["kind"]] for thing in right.facts["things"]}
            assert SORT[wrong.inputs["statement"].split()[-1]] in sorts


def test_the_scenes_are_those_of_scenes():
    keys = {"train_size": 20, "val_size": 1, "test_size": 1}
    data = SceneStatements(**keys).build()
    assert [*data.pictures()][3].key == [*Scenes(**keys).build().pictures()][3].key
    assert [scenes for scenes, _ in data.scene_sets("train")] == [
        scenes for scenes, _ in Scenes(**keys).build().scene_sets("train")
    ]
    assert len(SceneStatements(statements=1, **keys).build().split("train")) == 40


def test_similar_kinds_are_the_same_in_every_process():
    """The order of a set of words differs from process to process."""
    scenes = [scene_set[0][0] for scene_set in SceneStatements(train_size=30).build().scene_sets("train")]
    for scene in scenes:
        sorts = [SORT[kind] for kind in similar_kinds(scene)]
        assert sorts == sorted(sorts)
    assert any(len({*map(SORT.get, similar_kinds(scene))}) > 2 for scene in scenes)
