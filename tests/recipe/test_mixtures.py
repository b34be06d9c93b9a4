"""Several data sets of a step: their keys in a recipe, and the refusals of `mmgen check`."""

import json
from pathlib import Path

import jsonschema
import pytest

from mmgen.errors import RecipeError
from mmgen.recipe.json_schema import schema
from mmgen.recipe.load import from_json, load
from mmgen.recipe.paths import with_real_paths
from mmgen.recipe.show import toml
from mmgen.registry import installed

REGISTRY = installed()


RECIPE = """\
name = "toy"
[backbone]
type = "bert"
[inputs.caption]
type = "text"
[inputs.image]
type = "regions"
features = "regions.h5"
[generator]
type = "masked"
[objectives.words]
type = "masked_words"
[objectives.pictured]
type = "masked_words"
inputs = ["caption"]
[objectives.fits]
type = "sentence_image"
second = "caption"
[steps.pre]
inputs = ["caption", "image"]
train = ["backbone", "image"]
objectives = ["words"]
evaluate = false
{data}
[data]
type = "scenes"
"""


TWO = """\
data = [
  {{ type = "table", folder = "pictures", share = 3{first} }},
  {{ type = "table", folder = "texts", inputs = ["caption"]{second} }},
]"""


def read(folder, data, *changes):
    text = RECIPE.replace("{data}", data)
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    (folder / "toy.toml").write_text(text)
    return load(folder / "toy.toml", REGISTRY)


def mistakes(folder, data, *changes):
    with pytest.raises(RecipeError) as error:
        read(folder, data, *changes)
    return str(error.value).replace(f"{folder}/", "").splitlines()


def two(first="", second=""):
    return TWO.format(first=first, second=second)


def test_what_is_not_written_follows_from_the_step(tmp_path):
    recipe, layers = read(tmp_path, two())
    pictures, texts = recipe.sources("pre").values()
    assert [*recipe.sources("pre")] == ["table", "table 2"]
    assert (pictures.share, pictures.inputs, pictures.objectives) == (3, ("caption", "image"), ("words",))
    assert (texts.share, texts.inputs, texts.objectives) == (1, ("caption",), ("words",))
    assert pictures.data.folder == tmp_path / "pictures" and recipe.scored_data("pre") is None
    assert layers.place(("steps", "pre", "data", "1", "folder")) == f"{tmp_path}/toy.toml:26"
    assert [part.type for part in recipe.parts()].count("table") == 2


def test_a_step_is_scored_on_its_first_data_set(tmp_path):
    words = ('objectives = ["words"]\nevaluate = false', 'objectives = ["generator"]\nevaluate = "own"')
    recipe, _ = read(tmp_path, two(), words)
    assert recipe.scored_data("pre").folder == tmp_path / "pictures" and not recipe.writes("pre")


def test_an_objective_is_left_out_where_its_inputs_are_not(tmp_path):
    matching = ('objectives = ["words"]', 'objectives = ["words", "fits"]')
    second = ('second = "caption"', 'caption = "image"\nsecond = "caption"')
    recipe, _ = read(tmp_path, two(), matching, second)
    assert [source.objectives for source in recipe.sources("pre").values()] == [("words", "fits"), ("words",)]
    apart = (', objectives = ["pictured"]', ', objectives = ["words"]')  # both hide captions, never of one example
    recipe, _ = read(tmp_path, two(*apart), ('objectives = ["words"]\nev', 'objectives = ["words", "pictured"]\nev'))
    assert [source.objectives for source in recipe.sources("pre").values()] == [("pictured",), ("words",)]


def test_a_kept_and_a_shown_recipe_are_the_same_recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recipe, layers = read(tmp_path, two(', objectives = ["words"]'))
    assert from_json(json.dumps(recipe.identity()), REGISTRY, "recipe.json").identity() == recipe.identity()
    shown = toml(recipe.identity(), layers)
    (tmp_path / "shown.toml").write_text(shown)
    assert load(tmp_path / "shown.toml", REGISTRY)[0].identity() == recipe.identity()
    table = recipe.model_dump(mode="json")["steps"]["pre"]["data"][1]
    assert (table["type"], table["share"], table["inputs"]) == ("table", 1, ["caption"]) and "data" not in table
    (tmp_path / "link").symlink_to(tmp_path)
    elsewhere = load(Path("link/toy.toml"), REGISTRY)[0]
    assert (
        elsewhere.identity() != recipe.identity()
        and with_real_paths(elsewhere).identity() == with_real_paths(recipe).identity()
    )


@pytest.mark.slow
def test_editors_complete_it():
    table = {"type": "scenes", "share": 2, "inputs": ["caption"]}
    recipe_schema = schema(REGISTRY)
    jsonschema.validate({"steps": {"pre": {"data": [table, {"type": "table", "folder": "x"}]}}}, recipe_schema)
    for wrong in ([], [{**table, "shares": 2}], table):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"steps": {"pre": {"data": wrong}}}, recipe_schema)


def test_an_empty_list_is_not_all(tmp_path):
    for key in ("inputs", "objectives"):
        with pytest.raises(RecipeError) as error:
            read(tmp_path, two(f", {key} = []"))
        assert str(error.value) == f"{tmp_path}/toy.toml:25: steps.pre.data.0.{key}: must not be empty"
    recipe, _ = read(tmp_path, two())
    saved = recipe.identity()
    assert not {"inputs", "objectives"} & {*saved["steps"]["pre"]["data"][0]}
    assert from_json(json.dumps(saved), REGISTRY, "recipe.json").identity() == recipe.identity()


def test_a_later_layers_list_stands_in_place_of_the_whole_list(tmp_path):
    plain, another = '[data]\ntype = "scenes"\n', "[[profiles.other.steps.pre.data]]\n"
    first, second = another + 'type = "scenes"\n', another + 'type = "table"\nfolder = "x"\nshare = 2\n'
    read(tmp_path, two(), (plain, plain + first + second))
    recipe, layers = load(tmp_path / "toy.toml", REGISTRY, "other")
    assert [(name, source.share) for name, source in recipe.sources("pre").items()] == [("scenes", 1), ("table", 2)]
    assert layers.origins["steps", "pre", "data", "1", "share"] == f"{tmp_path}/toy.toml:35"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            "data = []",
            "24: steps.pre.data: must not be empty",
        ),
        ('data = [{ type = "scenes", share = 0 }]', "24: steps.pre.data.0.share: must be more than 0, not 0"),
        (
            'data = [{ type = "scenes", share = 0.5 }, { type = "table", folder = "texts", share = 99.5 }]',
            "24: steps.pre.data.0.share: this share gives the first data set only 0.64 of 128 pairs per update, "
            "and every update needs at least one; raise the share or training.batch_size, or put another "
            "data set first",
        ),
        (two(second=", share = -1.5"), "26: steps.pre.data.1.share: must be more than 0, not -1.5"),
        (two(second=', share = "2"'), '26: steps.pre.data.1.share: must be a number, not "2"'),
        ('data = [{ type = "scenes" }, 3]', "24: steps.pre.data.1: must be a table, not 3"),
        (two(second=", shares = 2"), "26: steps.pre.data.1.shares: no such key; did you mean 'share'?"),
        (
            'data = [\n  { type = "scenes" },\n  { type = "scenes", share = 2 },\n]',
            "26: steps.pre.data.1: duplicate of data.0, so the ids of examples collide; keep one of the two, with "
            "the sum of both shares",
        ),
        (
            two(', inputs = ["captoin"]'),
            "25: steps.pre.data.0.inputs: unknown input 'captoin'; did you mean 'caption'?; choose "
            "from: caption, image",
        ),
        (
            two(second=', objectives = ["generator"]'),
            "26: steps.pre.data.1.objectives: unknown objective 'generator'; choose from: words",
        ),
        (
            two(', inputs = ["image"]'),
            "25: steps.pre.data.0: no objective of the step fits the inputs of this data set (image); remove the data "
            "set",
        ),
        (
            two(', inputs = ["image"], objectives = ["words"]'),
            "25: steps.pre.data.0.objectives: 'words' hides words, but the step reads no text; add an input of type "
            '"text" to the step',
        ),
    ],
)
def test_what_cannot_be_trained_together_is_refused_with_its_line(tmp_path, data, expected):
    assert mistakes(tmp_path, data) == [f"toy.toml:{expected}"]


@pytest.mark.parametrize(
    ("data", "change", "expected"),
    [
        (
            two(', objectives = ["words"]', ', objectives = ["words"]'),
            ('objectives = ["words"]\nev', 'objectives = ["words", "pictured"]\nev'),
            "22: steps.pre.objectives: no data set of the step trains 'pictured': no data set has all inputs that "
            "it reads",
        ),
        (
            'data = [{ type = "table", folder = "t", inputs = ["caption"] }, { type = "scenes", train_size = 9 }]',
            ('objectives = ["words"]\nevaluate = false', 'objectives = ["generator"]\nevaluate = "own"'),
            "23: steps.pre.evaluate: the step is scored on its first data set, 'table', which has no input 'image'; "
            "list another data set first, or set evaluate = false",
        ),
        (
            "",
            ('[data]\ntype = "scenes"', '[[data]]\ntype = "scenes"'),
            '25: data: must be a table, not [{"type": "scenes"}]',
        ),
    ],
)
def test_what_a_mixture_cannot_do_is_refused(tmp_path, data, change, expected):
    assert mistakes(tmp_path, data, change) == [f"toy.toml:{expected}"]
