"""What a query gives to each input: a picture and its sound, where both inputs read one field."""

from pathlib import Path

import numpy as np
import pytest
from kit import toys
from mmgen_regions import Regions

from mmgen.decoding import Decoding
from mmgen.errors import DataError, RunError
from mmgen.inference import predict
from mmgen.inference.given import by_input
from mmgen.inference.predictor import Asker
from mmgen.inference.query import Query, requests
from mmgen.model import compose
from mmgen.parts import FailedImage, Picture, Record
from mmgen.recipe.load import load
from mmgen.registry import installed

RECIPE = toys.recipe(
    inputs={
        "image": {"type": "regions", "extractor": {"type": "roi"}},
        "sound": {"type": "text", "reads": ["image"]},
        "caption": {"type": "text"},
    },
    steps={
        "caption": {"inputs": ["caption"], "train": ["backbone"]},
        "sound": {"inputs": ["sound"], "train": ["backbone"]},
        "all": {"inputs": ["image", "sound", "caption"], "train": ["image"]},
    },
)
SEEN = Record("seen", np.ones((2, 3), np.float32), np.array([[0, 0, 1, 1], [0, 0, 0.5, 1]], np.float32))
READS = "'caption' reads caption; 'sound' reads sound; 'all' reads image and sound and caption"


def test_what_is_typed_is_utf_8_whatever_the_locale():
    """Python reads bytes that the locale has no letters for as lone surrogates."""
    typed = "caption=two caf\udcc3\udca9s"
    assert predict.named_values([typed]) == {"caption": "two cafés"}
    with pytest.raises(DataError) as told:
        predict.named_values(["caption=two caf\udce9s"])
    assert str(told.value) == "--input caption: holds a byte that is not UTF-8; give it in UTF-8"


@pytest.fixture
def recipe(tmp_path):
    (tmp_path / "toy.toml").write_text(RECIPE)
    return load(tmp_path / "toy.toml", installed())[0]


@pytest.fixture
def asker(recipe):
    inputs = {**recipe.inputs, "image": Regions(width=3, fingerprint={}, reads=("image",))}
    model = compose(recipe.backbone, inputs, recipe.generator, texts=["a dog barks"] * 3)
    return Asker(recipe, "all", model, Path("run"))


def seen(asker: Asker, **inputs) -> list:
    """The field `image` as the readers of `image` and `sound` see it."""
    example = asker.example(Query("q", inputs))
    return [example.seen_by(name).inputs["image"] for name in ("image", "sound")]


def test_two_inputs_of_one_field_have_values_of_their_own(asker):
    image, sound = seen(asker, image=SEEN, sound="a bark", caption="a dog")
    assert image.key == "seen" and sound == "a bark"
    image, sound = seen(asker, sound="a bark", image=SEEN, caption="a dog")
    assert image.key == "seen" and sound == "a bark"


def test_both_values_are_read_when_a_text_is_written(asker):
    queries = [
        Query("q", {"image": SEEN, "sound": sound, "caption": "a dog"}) for sound in ("a bark", "dog a barks a dog")
    ]
    (_, first), (_, second) = asker.answers(queries, Decoding(), at_once=2)
    assert first[0].score != second[0].score


def test_a_key_is_for_every_input_that_reads_the_field_and_a_picture_is_not(asker, monkeypatch):
    monkeypatch.setattr(asker, "_value", lambda name, reader, value, query: SEEN)
    assert seen(asker, image="scene-1", caption="a dog")[1] == "scene-1"
    with pytest.raises(DataError) as told:
        asker.example(Query("q", {"image": SEEN, "caption": "a dog"}))
    assert str(told.value) == "q: the step 'all' reads image and sound and caption, and there is no sound"


def test_a_picture_beside_the_same_input_by_name_is_given_twice(asker):
    with pytest.raises(DataError) as told:
        asker.example(Query("q", {"image": SEEN, "sound": "a bark", "caption": "a dog"}, Picture("p", None)))
    assert str(told.value) == "q: the picture is given twice, by another name too; leave one out"


def test_a_picture_that_no_input_reads_is_refused(recipe):
    texts = recipe.model_copy(update={"inputs": {"caption": recipe.inputs["caption"]}})
    with pytest.raises(DataError) as told:
        by_input(texts, Query("q", {"caption": "a dog"}, Picture("p", None)))
    assert str(told.value) == "q: no input reads a picture; there are: caption"


def test_what_the_step_does_not_read_is_refused(asker):
    asker.step, asker.inputs = "caption", ("caption",)
    with pytest.raises(DataError) as told:
        asker.example(Query("q", {"caption": "a dog"}, Picture("p", None)))
    assert str(told.value) == (
        "q: the picture is not read by the step 'caption'; leave it out, or choose another step: " + READS
    )


def test_a_text_without_end_is_refused(asker):
    endless = {"caption": "a " * 600_000}
    why = "'caption' has 1,200,000 letters, and may have 1,000,000"
    with pytest.raises(DataError, match=f"^q: {why}$"):
        asker.example(Query("q", endless))
    assert asker.example(Query("q", endless, place="a.jsonl:1")) == FailedImage("q", f"a.jsonl:1: {why}")


def test_a_broken_line_gives_its_reason(asker):
    assert asker.example(Query("q", place="a:1", problem="a:1: odd")) == FailedImage("q", "a:1: odd")


@pytest.mark.parametrize(
    ("inputs", "picture", "told"),
    [
        ({"sound": "a bark", "caption": "a dog"}, Picture("p", None), "all"),
        ({"sound": "a bark"}, None, "sound"),
        ({"image": "scene-1"}, None, "sound"),
        (
            {},
            Picture("p", None),
            "run: sound is missing: the step 'all' reads image and sound and caption; give it with --input "
            'sound=VALUE, or as "sound" in a line of a JSONL file',
        ),
        (
            {"caption": "a dog"},
            Picture("p", None),
            "run: photo.png: the picture is not read by the step 'caption'; give all that a step reads and nothing "
            f"else: {READS}",
        ),
    ],
)
def test_the_step_reads_all_that_is_given(recipe, monkeypatch, inputs, picture, told):
    monkeypatch.setattr(predict.RunFolder, "recipe", lambda self, registry: recipe)
    monkeypatch.setattr(predict.RunFolder, "finished", lambda *_: True)
    monkeypatch.setattr(predict, "load_run", lambda path, step, sets: step)
    try:
        assert predict.load("run", [Query("photo.png", inputs, picture)]) == told
    except RunError as error:
        assert str(error) == told


def test_a_list_of_nothing_is_nothing_given():
    """An input of no picture is one that lacks, and is told so."""
    (query,) = requests([], {"image": [], "caption": "a dog", "choices": [""]})
    assert query.inputs == {"caption": "a dog", "choices": [""]}
