"""Several data sets of a step: their keys in a recipe, and what is refused."""

from pathlib import Path

import pytest
from kit.refusals import refusal

from mmgen.recipe.load import from_values, load
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


def two(first="", second=""):
    return TWO.format(first=first, second=second)


def test_what_is_not_written_follows_from_the_step(tmp_path):
    recipe, layers = read(tmp_path, two())
    pictures, texts = recipe.sources("pre").values()
    assert [*recipe.sources("pre")] == ["table", "table 2"]
    assert (pictures.share, pictures.inputs, pictures.objectives) == (3, ("caption", "image"), ("words",))
    assert (texts.share, texts.inputs, texts.objectives) == (1, ("caption",), ("words",))
    assert pictures.folder == tmp_path / "pictures" and recipe.scored_data("pre") is None
    assert layers.place(("steps", "pre", "data", "1", "folder")) == f"{tmp_path}/toy.toml:26"


def test_a_step_is_scored_on_its_first_data_set(tmp_path):
    words = ('objectives = ["words"]\nevaluate = false', 'objectives = ["generator"]\nevaluate = "own"')
    recipe, _ = read(tmp_path, two(), words)
    assert recipe.scored_data("pre").folder == tmp_path / "pictures" and not recipe.writes("pre")


def test_an_objective_is_left_out_where_its_inputs_are_not(tmp_path):
    matching = ('objectives = ["words"]', 'objectives = ["words", "fits"]')
    recipe, _ = read(tmp_path, two(), matching, ('second = "caption"', 'caption = "image"\nsecond = "caption"'))
    assert [source.objectives for source in recipe.sources("pre").values()] == [("words", "fits"), ("words",)]
    apart = (', objectives = ["pictured"]', ', objectives = ["words"]')  # both hide captions, never of one example
    recipe, _ = read(tmp_path, two(*apart), ('objectives = ["words"]\nev', 'objectives = ["words", "pictured"]\nev'))
    assert [source.objectives for source in recipe.sources("pre").values()] == [("pictured",), ("words",)]


def test_a_kept_and_a_shown_recipe_are_the_same_recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recipe, layers = read(tmp_path, two(', objectives = ["words"]'))
    assert from_values(recipe.identity(), REGISTRY, "recipe.json").identity() == recipe.identity()
    (tmp_path / "shown.toml").write_text(toml(recipe.identity(), layers))
    assert load(tmp_path / "shown.toml", REGISTRY)[0].identity() == recipe.identity()
    (tmp_path / "link").symlink_to(tmp_path)
    elsewhere = load(Path("link/toy.toml"), REGISTRY)[0]
    assert elsewhere.identity() != recipe.identity()
    assert with_real_paths(elsewhere).identity() == with_real_paths(recipe).identity()


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
        ('data = [{ type = "scenes" }, 3]', "24: steps.pre.data.1: must be a table, not 3"),
        (two(second=", shares = 2"), "26: steps.pre.data.1.shares: no such key; did you mean 'share'?"),
        (two(", inputs = []"), "25: steps.pre.data.0.inputs: must not be empty"),
        (two(', inputs = ["captoin"]'), "25: steps.pre.data.0.inputs: unknown name 'captoin'; did you mean 'caption'?"),
        (two(second=', objectives = ["generator"]'), "26: steps.pre.data.1.objectives: unknown name 'generator'; "),
        (
            two(', inputs = ["image"]'),
            "25: steps.pre.data.0: no objective of the step fits the inputs of this data set (image); remove the data ",
        ),
        (
            two(', inputs = ["image"], objectives = ["words"]'),
            "25: steps.pre.data.0.objectives: 'words' hides words, but the step reads no text; add an input of type ",
        ),
        (
            two(*[', objectives = ["words"]'] * 2).replace("data = ", 'objectives = ["words", "pictured"]\ndata = '),
            "24: steps.pre.objectives: no data set of the step trains 'pictured': none has all inputs that it reads",
        ),
        ('[data]\ninputs = ["caption"]\n', "25: data.inputs: is a key of the data of a step; remove it"),
    ],
)
def test_what_cannot_be_trained_together_is_refused_with_its_line(tmp_path, data, expected):
    text = ('objectives = ["words"]\nevaluate', "evaluate") if data.startswith("objectives") else ("toy", "toy")
    own = ('[data]\ntype = "scenes"\n', 'type = "scenes"\n') if data.startswith("[data]") else ("toy", "toy")
    (line,) = refusal(read, tmp_path, data, text, own).splitlines()
    assert line.replace("23: steps", "24: steps").startswith(f"{tmp_path}/toy.toml:{expected}")
