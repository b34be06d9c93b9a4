"""What all data sets of drawn scenes share: combinations that are not seen in training, and more things in tests."""

import pytest
from mmgen_scenes import Scenes
from mmgen_scenes.drawn import WHOLE_SCENE, plain_scene, things
from mmgen_tasks import SceneChoices, SceneExpressions, ScenePairs
from pydantic import ValidationError

from mmgen.errors import DataError

CONFIG = Scenes(train_size=3, val_size=1, test_size=1, image_size=64)
UNSEEN = ("red ball", "white dog", "blue car", "green tree")
SIZES = {"train_size": 60, "val_size": 30, "test_size": 60}


def looks(examples):
    """The colours and kinds of all things in the examples' scenes."""
    known = [example.facts["things"] for example in examples]
    scenes = [scene for things in known for scene in (things if isinstance(things[0], list) else [things])]
    return {f"{thing['color']} {thing['kind']}" for scene in scenes for thing in scene}


@pytest.mark.slow
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


@pytest.mark.slow
def test_examples_that_name_an_unseen_combination():
    """In the singular or the plural, in any text of the example."""
    unseen = ("orange butterfly", *UNSEEN)
    words = (*unseen, "red balls", "white dogs", "blue cars", "green trees", "orange butterflies")
    examples = SceneExpressions(train_size=1, val_size=1, test_size=400, unseen=unseen).build().split("test")
    named = [any(f"{word} " in f"{e.inputs['expression']} " for word in words) for e in examples]
    assert [example.facts["combination"] == "unseen" for example in examples] == named and any(named)


@pytest.mark.slow
def test_more_things_in_tests():
    data = SceneExpressions(**SIZES, min_things=4, max_things=5, test_things=7).build()
    counts = {split: {len(e.facts["things"]) for e in data.split(split)} for split in data.splits()}
    assert counts == {"train": {4, 5}, "val": {4, 5}, "test": {7}}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["red unicorn", "pink ball", "ball", "brown sun"])
def test_impossible_combinations(name):
    message = f"unseen: '{name}' is not a colour and a kind that has it, such as \"red car\""
    with pytest.raises(ValidationError, match=message):
        Scenes(unseen=[name])


def test_splits_are_made_on_first_use_and_sizes_change_no_scene():
    data, larger = CONFIG.build(), Scenes(train_size=5, val_size=1, test_size=1).build()
    assert data.splits() == ("train", "val", "test")
    assert data.scene_sets("train") == larger.scene_sets("train")[:3]
    assert data.scene_sets("train") is data.scene_sets("train")
    with pytest.raises(DataError, match="have no split 'dev'; choose from: train, val, test"):
        data.split("dev")


def test_a_picture_has_a_box_for_every_thing_and_for_the_whole():
    data = CONFIG.build()
    picture = next(data.pictures())
    (scene,) = data.scene_sets("train")[0].scenes
    assert picture.key == scene.id and len(picture.boxes) == len(scene.things) + 1
    assert picture.boxes[-1] == (0.0, 0.0, 1.0, 1.0) and picture.region_names[-1] == WHOLE_SCENE
    assert picture.load().size == (64, 64)
    assert [fact["box"] for fact in things(scene)] == [list(box) for box in picture.boxes[:-1]]


def test_data_sets_may_show_the_scenes_of_another():
    _, scene = plain_scene(CONFIG, "train", 1)
    assert scene == CONFIG.build().scene_sets("train")[1].scenes[0]
