"""Queries from Python values, files and NAME=VALUE pairs, and the names by which they give values to a step."""

import numpy as np
import pytest
from kit import toys
from kit.refusals import refusal
from mmgen_inputs import Regions

from mmgen.examples import Example
from mmgen.inference.predictor import Predictor
from mmgen.inference.query import Query, named_values, queries_of, read_sources
from mmgen.inference.query_names import StepNames
from mmgen.model import compose
from mmgen.parts import Record

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


@pytest.fixture
def recipe(tmp_path):
    return toys.loaded(tmp_path, RECIPE)


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
        ('{"a": 1}\n{"a": ', "{path}:2: not valid JSON: Expecting value (column 7)"),
        ('{"a": 1, "id": "x"}\n' * 2, "{path}:2: duplicate id 'x', also in {path}:1; ids must be unique"),
    ],
)
def test_lines_that_are_no_queries(tmp_path, lines, message):
    path = tmp_path / "ask.jsonl"
    path.write_text(lines)
    assert refusal(read_sources, [path]).startswith(message.format(path=path))


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


BOTH = {"image": {"image": "seen"}, "sound": {"image": "seen"}}


@pytest.mark.parametrize(
    ("name", "like", "fields", "query", "bound", "missing"),
    [
        # the name of a field is for both inputs that read it; "picture" is for the input that takes pictures
        ("sound", "sound", ("image",), {"image": "seen"}, BOTH, ["caption"]),
        ("sound", "sound", ("image",), {"picture": "seen"}, {"image": {"image": "seen"}}, ["sound", "caption"]),
        # where two inputs take one, it needs a name, unless they read one field
        ("sound", "image", ("sound",), {"picture": "seen"}, {}, ["image", "sound", "caption"]),
        ("sound", "image", ("image",), {"picture": "seen"}, BOTH, ["caption"]),
        # a name that is an input which reads another field is for this input alone
        ("caption", "caption", ("sound",), {"sound": "bark"}, {"sound": {"image": "bark"}}, ["image", "caption"]),
        # an input of two fields is given by them
        ("sound", "sound", ("a", "b"), {"a": "bark"}, {"sound": {"a": "bark"}}, ["image", "b", "caption"]),
    ],
)
def test_values_are_for_the_inputs_that_read_their_fields(recipe, name, like, fields, query, bound, missing):
    inputs = {**recipe.inputs, name: recipe.inputs[like].model_copy(update={"fields": fields})}
    result = StepNames(recipe.model_copy(update={"inputs": inputs}), "all").bind(Query("q", query))
    assert (result.inputs, result.missing) == (bound, missing)
