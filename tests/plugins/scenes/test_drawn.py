"""What all data sets of drawn scenes share: combinations that are not seen in training, and more things in tests."""

import pytest
from mmgen_scenes import Scenes
from mmgen_tasks import SceneChoices, SceneExpressions, ScenePairs
from pydantic import ValidationError

pytestmark = pytest.mark.slow

UNSEEN = ("red ball", "white dog", "blue car", "green tree")
SIZES = {"train_size": 60, "val_size": 30, "test_size": 60}


def looks(examples):
    """The colours and kinds of all things in the examples' scenes."""
    known = [example.facts["things"] for example in examples]
    scenes = [scene for things in known for scene in (things if isinstance(things[0], list) else [things])]
    return {f"{thing['color']} {thing['kind']}" for scene in scenes for thing in scene}


@pytest.mark.parametrize("config", [Scenes, SceneExpressions, SceneChoices, ScenePairs])
def test_unseen_combinations_are_in_the_test_split_only(config):
    data = config(**SIZES, unseen=UNSEEN).build()
    for split in ("train", "val"):
        assert not looks(data.split(split)) & {*UNSEEN} and len(data.scene_sets(split)) == SIZES[f"{split}_size"]
        assert {example.facts["combination"] for example in data.split(split)} == {"seen"}
    plain = config(**SIZES).build()
    assert looks(data.split("test")) & {*UNSEEN} and looks(plain.split("train")) & {*UNSEEN}
    assert [example.id for example in data.split("test")] == [example.id for example in plain.split("test")]
    assert "combination" not in plain.split("test")[0].facts


def test_examples_that_name_an_unseen_combination():
    """In the singular or the plural, in any text of the example."""
    unseen = ("orange butterfly", *UNSEEN)
    words = (*unseen, "red balls", "white dogs", "blue cars", "green trees", "orange butterflies")
    examples = SceneExpressions(train_size=1, val_size=1, test_size=400, unseen=unseen).build().split("test")
    named = [any(f"{word} " in f"{e.inputs['expression']} " for word in words) for e in examples]
    assert [example.facts["combination"] == "unseen" for example in examples] == named and any(named)


def test_more_things_in_tests():
    data = SceneExpressions(**SIZES, min_things=4, max_things=5, test_things=7).build()
    counts = {split: {len(e.facts["things"]) for e in data.split(split)} for split in data.splits()}
    assert counts == {"train": {4, 5}, "val": {4, 5}, "test": {7}}


@pytest.mark.parametrize("name", ["red unicorn", "pink ball", "ball", "brown sun"])
def test_impossible_combinations(name):
    message = f"unseen: '{name}' is not a colour and a kind that has it, such as \"red car\""
    with pytest.raises(ValidationError, match=message):
        Scenes(unseen=[name])
