"""The data set of drawn scenes, its drawn versions and its metric."""

import hashlib
import json
import pickle

import pytest
from mmgen_scenes import Discovery, Scenes
from mmgen_scenes.drawn import WHOLE_SCENE
from mmgen_scenes.tasks import (
    SceneAnswers,
    SceneChoices,
    SceneExpressions,
    ScenePairs,
    SceneStatements,
)
from pydantic import ValidationError

from mmgen.examples import Example, Generation

pytestmark = pytest.mark.slow


def test_wrong_numbers_of_things_and_unknown_splits():
    with pytest.raises(ValidationError, match=r"min_things: must be at most max_things \(5\), not 6"):
        Scenes(min_things=6, max_things=5)
    with pytest.raises(ValidationError, match="test_split: drawn scenes have no split 'dev'; choose from: train, val"):
        Scenes(test_split="dev")


def test_pictures(data, examples):
    pictures = list(data.pictures())
    assert [picture.key for picture in pictures] == [example.inputs["image"] for example in examples]
    assert len({json.dumps(example.facts["things"]) for example in examples}) == len(examples) == 300 + 40 + 120
    for picture, example in zip(pictures, examples, strict=True):
        assert [list(box) for box in picture.boxes] == [*(t["box"] for t in example.facts["things"]), [0, 0, 1, 1]]
        assert [*picture.region_names] == [*(f"{t['color']} {t['kind']}" for t in example.facts["things"]), WHOLE_SCENE]
    image = pickle.loads(pickle.dumps(pictures[0])).load()
    assert (image.mode, image.size) == ("RGB", (192, 192))


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


def test_captions_about_other_groups():
    """A later caption names none of the first one's things, so that words do not say whether it fits."""
    data = Scenes(train_size=60, captions=4, captions_about="others").build()
    for (scene,), (example, *_) in data.scene_sets("train"):
        # the things that each caption names
        first, *rest = ({place for _, _, things in phrases for place in things} for phrases in example.facts["phrases"])
        assert any(first & things for things in rest) == (len(scene.groups) == 3), example.id
        captioned = [thing["captioned"] for thing in example.facts["things"]]
        assert captioned == [n in first for n in range(len(scene.things))]


@pytest.mark.parametrize("config", [SceneAnswers, SceneChoices, SceneExpressions, ScenePairs, SceneStatements])
def test_sizes_change_no_earlier_example(config):
    fewer, more = (config(train_size=size, val_size=1, test_size=1).build().split("train") for size in (2, 5))
    assert fewer == more[: len(fewer)] and len(fewer) < len(more)
    assert config(train_size=2, seed=1).build().split("train") != fewer


def test_scenes_are_those_of_scenes():
    keys = {"train_size": 20, "val_size": 1, "test_size": 1}
    plain = Scenes(**keys).build()
    for config in (SceneAnswers, SceneStatements):
        shared = config(**keys).build()
        scenes = [[shown for shown, _ in made.scene_sets("train")] for made in (plain, shared)]
        assert scenes[0] == scenes[1]


def generations_of(examples, texts):
    return [Generation(example.id, text, (), 0.0) for example, text in zip(examples, texts, strict=True)]


def test_references_are_relevant_and_about_half_of_them_discover(data):
    scores = Discovery().build().references(data.split("test"))
    assert scores.values["relevance"] == scores.values["well_formed"] == 100
    assert 45 <= scores.values["discovery"] <= 62
    assert 0 < scores.values["chance_discovery"] < scores.values["chance_relevance"] < 15
    assert scores.notes == ("chance: questions about other scenes (40 a scene)",)


def test_parroting_the_caption_discovers_nothing(data):
    examples, metric = data.split("test"), Discovery().build()
    for captioned in (True, False):  # what is asked about
        things = [next(t for t in e.facts["things"] if t["captioned"] is captioned) for e in examples]
        texts = [f"where is the {thing['color']} {thing['kind']}?" for thing in things]
        values = metric.score(generations_of(examples, texts), examples).values
        assert (values["relevance"], values["discovery"]) == (100, 100 * (not captioned))
    few = metric.score(generations_of(examples[:4], ["", "", "what?", "what?"]), examples[:4])
    assert few.values == {"relevance": 0, "discovery": 0, "well_formed": 0, "distinct": 50}


def test_other_data_sets_have_no_relevance():
    examples = [Example("1", {"image": "1"}, ("what is that?",))]
    scores = Discovery().build().score(generations_of(examples, ["what is that?"]), examples)
    assert scores.values["relevance"] is None
    assert scores.notes == (
        "relevance and discovery need a data set that knows what is in its pictures, such as drawn scenes",
    )
