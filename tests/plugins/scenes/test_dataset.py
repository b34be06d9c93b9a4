"""The data set of drawn scenes, its drawn versions and its metric."""

import hashlib
import json
import pickle
import subprocess
import sys
from dataclasses import replace

import mmgen_scenes
import pytest
from kit.scenes import SMALL
from mmgen_scenes import Discovery, Scenes
from mmgen_scenes.drawn import WHOLE_SCENE, plain_scene
from pydantic import ValidationError

from mmgen.errors import DataError
from mmgen.examples import Example, Generation


def test_registration_and_json():
    assert Scenes in mmgen_scenes.register_datasets() and Discovery in mmgen_scenes.register_metrics()
    assert Scenes.model_validate_json(SMALL.model_dump_json()) == SMALL


def test_importing_the_plugin_is_light():
    code = "import sys, mmgen_scenes; print([m for m in ('torch', 'PIL', 'numpy') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.slow
def test_the_same_seed_makes_the_same_data_set(data):
    again = SMALL.build()
    assert all(again.split(name) == data.split(name) for name in data.splits())
    for first, second, _ in zip(data.pictures(), again.pictures(), range(5), strict=False):
        assert first.load().tobytes() == second.load().tobytes()
    assert SMALL.model_copy(update={"seed": 1}).build().split("test") != data.split("test")


def test_scenes_are_unique(data, examples):
    assert [len(data.split(name)) for name in ("train", "val", "test")] == [300, 40, 120]
    assert len({example.id for example in examples}) == len(examples)
    assert len({json.dumps(example.facts["things"]) for example in examples}) == len(examples)


def test_wrong_numbers_of_things_and_unknown_splits():
    with pytest.raises(ValidationError, match=r"min_things: must be at most max_things \(5\), not 6"):
        Scenes(min_things=6, max_things=5)
    with pytest.raises(ValidationError, match="test_split: drawn scenes have no split 'dev'; choose from: train, val"):
        Scenes(test_split="dev")


@pytest.mark.parametrize(("captions", "questions"), [(1, 3), (10, 6)])
@pytest.mark.parametrize("things", [4, 7])
def test_other_sizes(captions, questions, things):
    config = Scenes(train_size=30, min_things=things, max_things=things, captions=captions, questions=questions)
    for example in config.build().split("train"):
        assert len(example.facts["things"]) == things
        assert len(set(example.targets)) == questions
        assert len(set(example.inputs["caption"])) == captions


def test_facts_are_json(examples):
    assert json.loads(json.dumps(examples[0].facts)) == examples[0].facts


def test_pictures(data, examples):
    pictures = list(data.pictures())
    assert [picture.key for picture in pictures] == [example.inputs["image"] for example in examples]
    for picture, example in zip(pictures, examples, strict=True):
        assert [list(box) for box in picture.boxes] == [*(t["box"] for t in example.facts["things"]), [0, 0, 1, 1]]
        assert [*picture.region_names] == [*(f"{t['color']} {t['kind']}" for t in example.facts["things"]), WHOLE_SCENE]
    image = pickle.loads(pickle.dumps(pictures[0])).load()
    assert (image.mode, image.size) == ("RGB", (192, 192))


def test_describe(data):
    described = data.describe()
    assert described["examples"] == {"train": 300, "val": 40, "test": 120}
    assert described["questions"] == 4 * 460 and described["kinds of things"] == 28


def test_scenes_do_not_change():
    """To the byte, whatever is added to the world, so that runs of earlier versions can be repeated."""
    digest = hashlib.sha256()
    small = Scenes(train_size=30, val_size=2, test_size=2)
    wide = Scenes(train_size=20, val_size=1, test_size=1, min_things=4, max_things=7, seed=3, questions=6, captions=10)
    for config in (small, wide):
        data = config.build()
        for name in data.splits():
            for (scene,), (example, *_) in data.scene_sets(name):
                facts = {name: fact for name, fact in example.facts.items() if name != "parses"}  # these came later
                content = [example.id, example.inputs, example.targets, facts]
                digest.update(json.dumps([content, scene.horizon, scene.water, scene.look], sort_keys=True).encode())
    assert digest.hexdigest() == "eebd7e8a86144fe471e46d995704c29145c35ee6c2bd9aeee97b76371972aa8d"


def named_groups(example):
    """The things that each caption names."""
    return [{place for _, _, things in phrases for place in things} for phrases in example.facts["phrases"]]


def test_captions_about_other_groups():
    """A later caption names none of the first one's things, so that words do not say whether it fits."""
    data = Scenes(train_size=60, captions=4, captions_about="others").build()
    for (scene,), (example, *_) in data.scene_sets("train"):
        first, *rest = named_groups(example)
        shared = [bool(first & things) for things in rest]
        assert any(shared) == (len(scene.groups) == 3), example.id
        assert [thing["captioned"] for thing in example.facts["things"]] == [
            n in first for n in range(len(scene.things))
        ]


CONFIG = Scenes(train_size=3, val_size=1, test_size=1, image_size=64)


def test_splits_are_made_on_first_use_and_sizes_change_no_scene():
    data, larger = CONFIG.build(), Scenes(train_size=5, val_size=1, test_size=1).build()
    assert data.splits() == ("train", "val", "test")
    assert data.scene_sets("train") == larger.scene_sets("train")[:3]
    assert data.scene_sets("train") is data.scene_sets("train")
    with pytest.raises(DataError, match="have no split 'dev'; choose from: train, val, test"):
        data.split("dev")


def test_data_sets_may_show_the_scenes_of_another():
    _, scene = plain_scene(CONFIG, "train", 1)
    assert scene == CONFIG.build().scene_sets("train")[1][0][0]


def generations_of(examples, texts):
    return [Generation(example.id, text, (), 0.0) for example, text in zip(examples, texts, strict=True)]


def questions_about(examples, captioned):
    """For every example, a question about its first thing that is (or is not) in the caption."""
    for example in examples:
        thing = next(thing for thing in example.facts["things"] if thing["captioned"] is captioned)
        yield f"where is the {thing['color']} {thing['kind']}?"


def test_references_are_relevant_and_about_half_of_them_discover(data):
    scores = Discovery().build().references(data.split("test"))
    assert scores.values["relevance"] == scores.values["well_formed"] == 100
    assert 45 <= scores.values["discovery"] <= 62
    assert 0 < scores.values["chance_discovery"] < scores.values["chance_relevance"] < 15
    assert scores.notes == ("chance: questions about other scenes (40 a scene)",)
    assert len(scores.per_example["relevance"]) == 120
    assert scores == Discovery().build().references(data.split("test"))


def test_parroting_the_caption_discovers_nothing(data):
    examples, metric = data.split("test"), Discovery().build()
    captioned_scores = metric.score(generations_of(examples, questions_about(examples, True)), examples)
    assert (captioned_scores.values["relevance"], captioned_scores.values["discovery"]) == (100, 0)
    other_scores = metric.score(generations_of(examples, questions_about(examples, False)), examples)
    assert (other_scores.values["relevance"], other_scores.values["discovery"]) == (100, 100)
    assert other_scores.per_example["discovery"] == [100] * len(examples)


def test_empty_and_equal_questions(data):
    examples = data.split("test")[:4]
    values = Discovery().build().score(generations_of(examples, ["", "", "what?", "what?"]), examples).values
    assert values == {"relevance": 0, "discovery": 0, "well_formed": 0, "distinct": 50}


def test_other_data_sets_have_no_relevance():
    examples = [Example("1", {"image": "1"}, ("what is that?",))]
    scores = Discovery().build().score(generations_of(examples, ["what is that?"]), examples)
    assert scores.values["relevance"] is None
    assert scores.notes == (
        "relevance and discovery need a data set that knows what is in its pictures, such as drawn scenes",
    )
    assert Discovery().build().references(examples).values["discovery"] is None


def test_scenes_without_questions(data):
    examples = [replace(example, targets=()) for example in data.split("test")[:3]]
    scores = Discovery().build().references(examples)
    assert scores.values["relevance"] is None and scores.notes == ("no questions to judge",)
