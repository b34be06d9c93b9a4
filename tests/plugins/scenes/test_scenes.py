"""Drawn scenes: reproducible, with true texts and tight boxes; and their metric."""

import hashlib
import json
import pickle
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import combinations

import mmgen_scenes
import numpy as np
import pytest
from mmgen_scenes import Discovery, Scenes, dependencies, draw
from mmgen_scenes.brush import PAINT, sprite
from mmgen_scenes.detector_classes import detector_classes
from mmgen_scenes.grammar import is_relevant, mentions, words
from mmgen_scenes.world import COLORS, KINDS, MOST_HIDDEN, overlap_share
from PIL import Image, ImageChops
from pydantic import ValidationError

import mmgen
from mmgen.tensors import Example, Generation

SMALL = Scenes(train_size=300, val_size=40, test_size=120)


@pytest.fixture(scope="module")
def data():
    return SMALL.build()


@pytest.fixture(scope="module")
def examples(data):
    return [example for name in data.splits() for example in data.split(name)]


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
    assert str(error.value) == "drawn scenes have no split 'dev'; there are train, val, test"
    with pytest.raises(ValidationError, match=r"min_things: must be at most max_things \(5\), not 6"):
        Scenes(min_things=6, max_things=5)


def test_the_world_is_wide_and_its_language_small(examples):
    things = [thing for example in examples for thing in example.facts["things"]]
    assert len(KINDS) >= 25
    assert {thing["kind"] for thing in things} == set(KINDS)
    assert {thing["color"] for thing in things} == set(COLORS)
    assert {thing["size"] for thing in things} == {"small", "big"}
    assert {thing["place"] for thing in things} == {"sky", "water", "grass", "sand", "snow"}
    texts = [text for example in examples for text in (*example.inputs["caption"], *example.targets)]
    assert len({word for text in texts for word in words(text)}) <= 130


def test_captions_are_about_the_same_part_of_the_scene(examples):
    for example in examples:
        captions, things = example.inputs["caption"], example.facts["things"]
        captioned = {thing["kind"] for thing in things if thing["captioned"]}
        assert len(set(captions)) == 5 and list(captions) == example.facts["captions"]
        assert len(captioned) == 2 < len({thing["kind"] for thing in things})
        for caption in captions:
            assert {mention.kind for mention in mentions(caption)} == captioned
            assert is_relevant(caption, things)


def test_phrases_map_words_to_things(examples):
    for example in examples:
        for caption, phrases in zip(example.facts["captions"], example.facts["phrases"], strict=True):
            for start, end, members in phrases:
                (mention,) = mentions(caption[start:end])
                assert members and {example.facts["things"][i]["kind"] for i in members} == {mention.kind}
                assert len(members) >= mention.least
                assert caption[end : end + 1] in ("", " ")  # "a ball" is not the beginning of "a balloon"


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


def test_things_hardly_hide_each_other(examples):
    for example in examples:
        boxes = [thing["box"] for thing in example.facts["things"]]
        assert all(0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1 for x0, y0, x1, y1 in boxes)
        assert all(overlap_share(a, b) <= MOST_HIDDEN for a, b in combinations(boxes, 2))


def test_pictures(data, examples):
    pictures = list(data.pictures())
    assert [picture.key for picture in pictures] == [example.inputs["image"] for example in examples]
    for picture, example in zip(pictures, examples, strict=True):
        assert [list(box) for box in picture.boxes] == [*(t["box"] for t in example.facts["things"]), [0, 0, 1, 1]]
        assert picture.region_names[:-1] == [f"{t['color']} {t['kind']}" for t in example.facts["things"]]
    image = pickle.loads(pickle.dumps(pictures[0])).load()
    assert (image.mode, image.size) == ("RGB", (192, 192))


def test_detector_classes_are_the_right_kind_and_similar_kinds(data):
    """The right kind has the highest probability; similar kinds have more of the rest than other kinds; the whole
    picture has no distribution. The probabilities are reproducible."""
    shares = Counter()
    for picture, again in zip(data.pictures(), data.pictures(), strict=True):
        classes = picture.classes
        assert classes.names == tuple(KINDS) and not classes.known[-1] and classes.known[:-1].all()
        assert [classes.names[first] for first in classes.ids[:-1, 0]] == [
            label.split()[1] for label in picture.region_names[:-1]
        ]
        assert (classes.probabilities[:-1, 0] > 0.5).all() and (classes.probabilities[:-1].sum(1) <= 1 + 1e-6).all()
        assert np.array_equal(classes.probabilities, again.classes.probabilities)
        for kind, chances in zip(picture.region_names[:-1], classes.distributions(), strict=False):
            if kind.endswith(" dog"):
                shares += Counter(dict(zip(classes.names, chances.tolist(), strict=True)))
    assert shares["cat"] > 3 * shares["car"] and shares["horse"] > 3 * shares["kite"]


def test_a_plural_label_has_its_kind_and_the_background_has_none(data):
    classes = detector_classes(data.scene_sets("train")[0].scenes[0], ["blue cats", "background"])
    assert classes.names[classes.ids[0, 0]] == "cat" and classes.known.tolist() == [True, False]


@pytest.mark.slow
@pytest.mark.parametrize("side", [64, 192, 400])
def test_boxes_are_tight(data, monkeypatch, side):
    monkeypatch.setattr(draw, "_draw_shadow", lambda *args: None)  # a shadow is not part of a thing
    for scene, _ in data.scenes("test")[:12]:
        nothing = draw.draw(replace(scene, things=()), side)
        for thing in scene.things:
            alone = draw.draw(replace(scene, things=(thing,)), side)
            changed = ImageChops.difference(alone, nothing).convert("L").point(lambda v: 255 * (v > 8)).getbbox()
            np.testing.assert_allclose(changed, np.array(thing.box) * side, atol=2.01)


@pytest.mark.slow
def test_every_kind_shows_its_color():
    paints = np.array([PAINT[color] for color in COLORS], dtype=float)  # (colours, light and shade, 3)
    for kind in KINDS.values():
        for color in kind.colors:
            pixels = np.asarray(sprite(draw.PAINTERS[kind.name], color, 60)).reshape(-1, 4).astype(float)
            solid = pixels[pixels[:, 3] > 250][:, None, None, :3]
            nearest = ((solid - paints) ** 2).sum(-1).min(-1).argmin(-1)
            shares = np.bincount(nearest, minlength=len(COLORS)) / len(nearest)
            assert shares[COLORS.index(color)] > 0.3, (kind.name, color, shares)


def test_kinds_differ_when_they_are_small():
    """At 40 pixels, without colour: the silhouettes or the shading differ."""

    def grey_image(kind) -> np.ndarray:
        image = sprite(draw.PAINTERS[kind.name], kind.colors[0], 120).resize((40, 40))
        flat = Image.new("RGBA", image.size, (190, 215, 190, 255))
        return np.asarray(Image.alpha_composite(flat, image).convert("L"), dtype=float)

    images = {name: grey_image(kind) for name, kind in KINDS.items()}
    for a, b in combinations(images, 2):
        assert abs(images[a] - images[b]).mean() > 18, (a, b)


def generations_of(examples, texts):
    return [Generation(example.id, text, (), 0.0) for example, text in zip(examples, texts, strict=True)]


def questions_about(examples, captioned):
    """A question for every example about its first thing that is captioned, or not."""
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
    assert scores.values["relevance"] is None and scores.notes == ("there are no questions to judge",)


def test_describe(data):
    described = data.describe()
    assert described["examples"] == {"train": 300, "val": 40, "test": 120}
    assert described["questions"] == 4 * 460 and described["kinds of things"] == 28


def test_captions_come_with_their_dependencies():
    """Stanford Dependencies, written by hand for every form of caption."""
    by_hand = {
        "a small red car on the left and two birds": "4det 4amod 4amod 0root 4prep 7det 5pobj 4cc 10num 4conj",
        "there are three big whales in the water and an orange cat": (
            "2expl 0root 5num 5amod 2nsubj 5prep 8det 6pobj 5cc 12det 12amod 5conj"
        ),
        "a picture of a tree and two dogs": "2det 0root 2prep 5det 3pobj 5cc 8num 5conj",
        "we see a yellow sun in the sky and a bus on the grass": (
            "2nsubj 0root 5det 5amod 2dobj 5prep 8det 6pobj 5cc 11det 5conj 11prep 14det 12pobj"
        ),
        "a cup near a drum": "2det 0root 2prep 5det 3pobj",
        "an umbrella to the left of a black house": "2det 0root 2prep 5det 3pobj 5prep 9det 9amod 6pobj",
    }
    for caption, words_ in by_hand.items():
        arcs = [f"{head}{relation}" for head, relation in dependencies.parse(caption)]
        assert arcs == words_.split(), caption
    for example in SMALL.build().split("test"):
        for caption, parse, phrases in zip(
            *(example.facts[name] for name in ("captions", "parses", "phrases")), strict=True
        ):
            assert len(parse) == len(caption.split()) and [head for head, _ in parse].count(0) == 1
            for first, end, _ in phrases:  # a noun phrase is connected: only one of its words depends on a word outside
                inside = {place for place, at in enumerate(starts(caption)) if first <= at < end}
                assert sum(parse[place][0] - 1 not in inside for place in inside) == 1, caption


def starts(caption):
    return [match.start() for match in re.finditer(r"\S+", caption)]


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
