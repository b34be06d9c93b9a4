"""The names by which a query gives values to a step: a picture and its sound, with both inputs reading one field."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from kit import toys
from mmgen_regions import Regions

from mmgen.errors import DataError, RunError
from mmgen.inference import load as load_module
from mmgen.inference.predictor import Predictor
from mmgen.inference.query import Query
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


def seen(predictor: Predictor, **inputs) -> list:
    """The field `image` as the readers of `image` and `sound` see it."""
    query = Query("q", inputs)
    example = predictor._example_of(query, predictor.names.bind_exactly(query), [])
    return [example.seen_by(name).inputs["image"] for name in ("image", "sound")]


def test_names_of_a_query_with_line_ends_are_shown_in_one_line(predictor):
    with pytest.raises(DataError) as error:
        predictor.names.check_known(Query("q", {"a\nb": "x"}))
    assert str(error.value) == "q: unknown input 'a\\nb'; available: image, sound, caption, prompt, avoid"
    with pytest.raises(DataError) as error:
        Query("q", {"a\nb": "x" * 2_000_000}).check()
    assert str(error.value) == "q: 'a\\nb' has 2,000,000 characters; the limit is 1,000,000"


def test_two_inputs_of_one_field_have_values_of_their_own(predictor):
    image, sound = seen(predictor, image=SEEN, sound="a bark", caption="a dog")
    assert image.key == "seen" and sound == "a bark"
    image, sound = seen(predictor, sound="a bark", image=SEEN, caption="a dog")
    assert image.key == "seen" and sound == "a bark"


def test_both_values_are_read_when_a_text_is_written(predictor):
    sounds = ("a bark", "dog a barks a dog")
    first, second = predictor.ask([{"image": SEEN, "sound": sound} for sound in sounds], caption="a dog")
    assert first.score != second.score


def test_a_value_by_the_fields_name_is_for_every_input_that_reads_it(predictor, monkeypatch):
    monkeypatch.setattr(predictor.features, "_resolve_one", lambda name, value, query, shown: SEEN)
    assert seen(predictor, image="scene-1", caption="a dog")[1] == "scene-1"


def test_a_picture_for_a_text_input_is_refused(predictor):
    with pytest.raises(DataError) as error:
        predictor.ask({"image": SEEN, "caption": "a dog"})
    assert str(error.value).startswith("'sound' must be a string, not ")


def test_a_picture_without_a_name_is_for_the_one_input_that_takes_pictures(predictor):
    with pytest.raises(DataError) as error:
        predictor.ask({"picture": SEEN, "caption": "a dog"})
    assert str(error.value) == (
        "this query: 'sound' is missing: step 'all' reads image and sound and caption; add sound=VALUE"
    )


def test_a_picture_beside_the_same_input_by_name_is_given_twice(predictor):
    with pytest.raises(DataError) as error:
        predictor.ask({"picture": SEEN, "image": SEEN, "sound": "a bark", "caption": "a dog"})
    assert str(error.value) == "this query: got two values for 'image', by name and as the picture; remove one"


def test_a_picture_needs_a_name_where_two_inputs_take_one(recipe):
    inputs = {**recipe.inputs, "sound": recipe.inputs["image"].model_copy(update={"fields": ("sound",)})}
    names = StepNames(recipe.model_copy(update={"inputs": inputs}), "all")
    with pytest.raises(DataError) as error:
        names.bind_exactly(Query("q", {"caption": "a dog"}, SEEN))
    assert str(error.value) == (
        "q: step 'all' has 2 inputs for pictures; name the input of the picture: image=PICTURE or sound=PICTURE"
    )


def test_a_picture_is_for_all_inputs_that_read_its_field(recipe):
    inputs = {**recipe.inputs, "sound": recipe.inputs["image"]}
    names = StepNames(recipe.model_copy(update={"inputs": inputs}), "all")
    bound = names.bind(Query("q", {"caption": "a dog"}, SEEN))
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
    with pytest.raises(DataError) as error:
        names.bind(Query("q", {"sound": "a bark"}))
    assert str(error.value) == "q: 'sound' reads what and where; give these fields separately"


def test_what_the_step_does_not_read_is_refused(recipe):
    with pytest.raises(DataError) as error:
        StepNames(recipe, "caption").bind_exactly(Query("q", {"caption": "a dog"}, SEEN))
    assert str(error.value) == (
        "q: step 'caption' does not read the picture; leave it out, or choose another step: " + READS
    )


@pytest.mark.parametrize(
    ("inputs", "picture", "expected"),
    [
        ({"sound": "a bark", "caption": "a dog"}, SEEN, "all"),
        ({"sound": "a bark"}, None, "sound"),
        ({"image": "scene-1"}, None, "sound"),
        (
            {},
            SEEN,
            "run: 'sound' is missing: step 'all' reads image and sound and caption; add --input "
            'sound=VALUE, or the field "sound" in a JSONL file',
        ),
        (
            {"caption": "a dog"},
            SEEN,
            f"run: photo.png: step 'caption' does not read the picture; give exactly the inputs of one step: {READS}",
        ),
    ],
)
def test_the_step_reads_all_that_is_given(recipe, monkeypatch, inputs, picture, expected):
    monkeypatch.setattr(load_module.RunFolder, "recipe", lambda self, registry: recipe)
    monkeypatch.setattr(load_module.RunFolder, "finished", lambda *_: True)
    fake = SimpleNamespace(kind="text", names=SimpleNamespace())
    monkeypatch.setattr(load_module, "load_run", lambda path, step, sets: SimpleNamespace(**vars(fake), step=step))
    try:
        assert load_module.load_for("run", [Query("photo.png", inputs, picture)]).step == expected
    except RunError as error:
        assert str(error) == expected


def test_queries_of_one_form_are_matched_once(recipe, monkeypatch):
    bound = []
    bind = StepNames.bind
    monkeypatch.setattr(load_module.RunFolder, "recipe", lambda self, registry: recipe)
    monkeypatch.setattr(load_module.RunFolder, "finished", lambda *_: True)
    monkeypatch.setattr(StepNames, "bind", lambda self, query: bound.append(query.id) or bind(self, query))
    queries = [Query(str(number), {"caption": "a dog"}, place=f"q.jsonl:{number}") for number in range(1000)]
    assert load_module.choose_step(Path("run"), queries, True).name == "caption"
    assert bound == ["0", "0", "0"]  # one of each step
    check = load_module.check_query(Path("run"))
    for query in queries:
        check(query)
    assert len(bound) == 6
    wrong = Query("x", {"sound": "a"}, SEEN, place="q.jsonl:7")
    with pytest.raises(DataError) as error:
        check(wrong)
    assert str(error.value) == (
        f"run: q.jsonl:7: step 'sound' does not read the picture; give exactly the inputs of one step: {READS}"
    )
    with pytest.raises(DataError) as error:
        check(Query("x", {}, place="q.jsonl:8"))
    assert str(error.value).startswith("q.jsonl:8: run: 'image' is missing: step 'all' reads ")
    with pytest.raises(DataError, match=r"q\.jsonl:7: 'caption' is missing: step 'caption' reads caption"):
        load_module.check_query("run", "caption")(wrong)
