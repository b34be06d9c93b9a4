"""Queries from Python values, files and NAME=VALUE pairs, and the names by which they give values to a step."""

from types import SimpleNamespace

import numpy as np
import pytest
from kit import toys
from mmgen_inputs import Regions

from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.inference import best_step as choosing
from mmgen.inference import load as loading
from mmgen.inference.predictor import Predictor
from mmgen.inference.query import Query, named_values, queries_of, read_sources
from mmgen.inference.query_names import StepNames
from mmgen.model import compose
from mmgen.parts import Record
from mmgen.recipe.load import load
from mmgen.registry import installed

RECIPE = toys.recipe(
    inputs={
        "image": {"type": "regions", "extractor": {"type": "roi"}},
        "sound": {"type": "text", "fields": ["image"]},
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


@pytest.fixture
def recipe(tmp_path):
    (tmp_path / "toy.toml").write_text(RECIPE)
    return load(tmp_path / "toy.toml", installed())[0]


@pytest.fixture
def predictor(recipe):
    inputs = {**recipe.inputs, "image": Regions(width=3, fingerprint={}, fields=("image",))}
    model = compose(recipe.backbone, inputs, recipe.generator, texts=["a dog barks"] * 3)
    return Predictor(model, recipe, "all")


def test_values_in_python_are_queries():
    example = Example("e", {})
    own = Query("own", {"image": "k"})
    assert queries_of(["a.jpg", b"x", {"caption": "y"}, own, example]) == [
        Query("a.jpg", {"picture": "a.jpg"}),
        Query("query 2", {"picture": b"x"}),
        Query("query 3", {"caption": "y"}),
        own,
        example,
    ]
    assert queries_of([{"caption": "x"}]) == [Query("query 1", {"caption": "x"})]


def test_pairs_are_values_and_nothing_is_nothing_given():
    assert named_values(["image=a.png", "caption=x = y", "image=b.png"]) == {
        "image": ["a.png", "b.png"],
        "caption": "x = y",
    }
    (query,) = read_sources([], {"image": [], "caption": "a dog", "choices": [""]})
    assert query.inputs == {"caption": "a dog", "choices": [""]}


def test_lines_are_queries_with_their_place(tmp_path):
    path = tmp_path / "ask.jsonl"
    path.write_text('{"image": "a.jpg"}\n\n{"id": 7, "image": "a.jpg", "caption": null}\n')
    first, second = read_sources([path], {"caption": "x"})
    assert first == Query("ask.jsonl:1", {"caption": "x", "image": "a.jpg"}, tmp_path, f"{path}:1")
    assert second == Query("7", {"caption": "x", "image": "a.jpg"}, tmp_path, f"{path}:3")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("", "{path}: no queries; give images (.avif, "),
        ('{"a": 1}\n{"a": ', "{path}:2: not valid JSON: Expecting value (column 7)"),
        ("3", '{path}:1: not a JSON object; write one such as {{"image": "photo.jpg"}}'),
        ('{"a": 1, "id": "x"}\n' * 2, "{path}:2: duplicate id 'x', also in {path}:1; ids must be unique"),
    ],
)
def test_lines_that_are_no_queries(tmp_path, lines, message):
    path = tmp_path / "ask.jsonl"
    path.write_text(lines)
    with pytest.raises(DataError) as error:
        read_sources([path])
    assert str(error.value).startswith(message.format(path=path))


def test_two_inputs_of_one_field_have_values_of_their_own(predictor):
    queries = [
        Query("a", {"image": SEEN, "sound": "a bark", "caption": "a dog"}),
        Query("b", {"sound": "dog a barks a dog", "image": SEEN, "caption": "a dog"}),
    ]
    for prepared, sound in zip(predictor.prepare(queries), ("a bark", "dog a barks a dog"), strict=True):
        example = prepared.read[0].example
        assert example.seen_by("image").inputs["image"].key == "seen"
        assert example.seen_by("sound").inputs["image"] == sound
    first, second = predictor.ask_all(queries)
    assert first.score != second.score


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"image": SEEN, "caption": "a dog"}, "query 1: 'sound' must be a string, not "),
        ({"picture": SEEN, "caption": "a dog"}, "query 1: 'sound' is missing: step 'all' reads image and sound and"),
    ],
)
def test_a_field_that_two_inputs_read(predictor, query, message):
    """By its own name the value is for both; as the picture it is for the input that takes pictures."""
    with pytest.raises(DataError) as error:
        predictor.ask(query)
    assert str(error.value).startswith(message)


def test_a_picture_needs_a_name_where_two_inputs_take_one(recipe):
    inputs = {**recipe.inputs, "sound": recipe.inputs["image"].model_copy(update={"fields": ("sound",)})}
    names = StepNames(recipe.model_copy(update={"inputs": inputs}), "all")
    with pytest.raises(DataError, match="^q: 'image' is missing: step 'all' reads image and sound and caption; add --"):
        names.bind_exactly(Query("q", {"caption": "a dog", "picture": SEEN}))


def test_a_picture_is_for_all_inputs_that_read_its_field(recipe):
    inputs = {**recipe.inputs, "sound": recipe.inputs["image"]}
    names = StepNames(recipe.model_copy(update={"inputs": inputs}), "all")
    bound = names.bind(Query("q", {"caption": "a dog", "picture": SEEN}))
    assert {name: bound.inputs[name]["image"] for name in ("image", "sound")} == {"image": SEEN, "sound": SEEN}


def test_a_name_that_is_an_input_which_reads_another_field_is_for_this_input_alone(recipe):
    """Field `sound` is read by `caption`, and an input that reads `image` is called `sound`."""
    inputs = {**recipe.inputs, "caption": recipe.inputs["caption"].model_copy(update={"fields": ("sound",)})}
    names = StepNames(recipe.model_copy(update={"inputs": inputs}), "all")
    bound = names.bind(Query("q", {"sound": "a bark"}))
    assert bound.inputs == {"sound": {"image": "a bark"}} and bound.missing == ["image", "caption"]


def test_an_input_of_two_fields_is_given_by_them(recipe):
    inputs = {**recipe.inputs, "sound": recipe.inputs["sound"].model_copy(update={"fields": ("what", "where")})}
    names = StepNames(recipe.model_copy(update={"inputs": inputs}), "sound")
    assert names.bind(Query("q", {"what": "a bark"})).missing == ["where"]
    with pytest.raises(DataError, match="^q: unknown input 'sound'; available: image, caption, what, where, "):
        names.bind(Query("q", {"sound": "a bark"}))


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({"sound": "a bark", "caption": "a dog", "picture": SEEN}, "all"),
        ({"sound": "a bark"}, "sound"),
        ({"image": "scene-1"}, "sound"),
        (
            {"picture": SEEN},
            "photo.png: 'sound' is missing: step 'all' reads image and sound and caption; add --input "
            "sound=VALUE, the field 'sound' of a JSONL file, or in Python the key 'sound'",
        ),
        (
            {"caption": "a dog", "picture": SEEN},
            "photo.png: step 'caption' does not read 'picture'; leave it out, or choose another step: " + READS,
        ),
    ],
)
def test_the_step_reads_all_that_is_given(recipe, monkeypatch, inputs, expected):
    monkeypatch.setattr(choosing.RunFolder, "recipe", lambda self, registry: recipe)
    monkeypatch.setattr(choosing.RunFolder, "trained", lambda *_: True)
    fake = SimpleNamespace(names=SimpleNamespace(), check_writes=lambda: None)
    monkeypatch.setattr(loading, "load", lambda path, step, sets: SimpleNamespace(**vars(fake), step=step))
    try:
        assert loading.load_for("run", [Query("photo.png", inputs)]).step == expected
    except DataError as error:
        assert str(error) == expected
