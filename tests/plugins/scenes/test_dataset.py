"""The data set of drawn scenes: reproducible, in every size, as JSON."""

import hashlib
import json
import pickle
import subprocess
import sys

import mmgen_scenes
import pytest
from kit.scenes import SMALL
from mmgen_scenes import Discovery, Scenes
from pydantic import ValidationError

import mmgen


def test_registration_and_json():
    assert Scenes in mmgen_scenes.register_datasets() and mmgen_scenes.register_metrics() == [Discovery]
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


def test_sizes_do_not_change_earlier_scenes(data):
    fewer = Scenes(train_size=7, val_size=3, test_size=5).build()
    for name in data.splits():
        assert fewer.split(name) == data.split(name)[: len(fewer.split(name))]


def test_scenes_are_unique(data, examples):
    assert [len(data.split(name)) for name in ("train", "val", "test")] == [300, 40, 120]
    assert len({example.id for example in examples}) == len(examples)
    assert len({json.dumps(example.facts["things"]) for example in examples}) == len(examples)


def test_unknown_splits_and_wrong_numbers_of_things(data):
    with pytest.raises(mmgen.DataError) as error:
        data.split("dev")
    assert str(error.value) == "drawn scenes have no split 'dev'; choose from: train, val, test"
    with pytest.raises(ValidationError, match=r"min_things: must be at most max_things \(5\), not 6"):
        Scenes(min_things=6, max_things=5)


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
        assert picture.region_names[:-1] == [f"{t['color']} {t['kind']}" for t in example.facts["things"]]
    image = pickle.loads(pickle.dumps(pictures[0])).load()
    assert (image.mode, image.size) == ("RGB", (192, 192))


def test_the_fingerprint_is_that_of_the_settings(data):
    assert data.fingerprint() == SMALL.build().fingerprint()
    assert data.fingerprint() != SMALL.model_copy(update={"seed": 1}).build().fingerprint()


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
            for scene, example in data.scenes(name):
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
    for scene, example in data.scenes("train"):
        first, *rest = named_groups(example)
        shared = [bool(first & things) for things in rest]
        assert any(shared) == (len(scene.groups) == 3), example.id
        assert [thing["captioned"] for thing in example.facts["things"]] == [
            n in first for n in range(len(scene.things))
        ]


def test_captions_about_any_groups():
    examples = Scenes(train_size=60, captions=4, captions_about="any").build().split("train")
    same = [things == first for first, *rest in map(named_groups, examples) for things in rest]
    assert 0.02 < sum(same) / len(same) < 0.4  # one of 3, 6, 10 or 15 pairs of groups
