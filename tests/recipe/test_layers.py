"""Layers of a recipe: later layers win, profiles extend one another, and every value has an origin."""

import re
from pathlib import Path

import pytest
from kit.recipes import GOOD, REGISTRY, mistakes

from mmgen.recipe.load import from_values, load
from mmgen.recipe.toml_lines import lines


def test_layers_later_wins_and_origins_are_known(recipe):
    recipe('extends = "parent.toml"\n[training]\nbatch_size = 7\n', "child.toml")
    recipe(GOOD, "parent.toml")
    loaded, layers = load(Path("child.toml"), REGISTRY, sets=("training.epochs=8",))
    assert (loaded.training.epochs, loaded.training.batch_size, loaded.profile) == (8, 7, "small")
    assert loaded.backbone.num_hidden_layers == 1
    assert layers.origins["training", "epochs"] == "--set training.epochs=8"
    assert layers.origins["training", "batch_size"] == "child.toml:3"
    assert layers.origins["backbone", "num_hidden_layers"] == "parent.toml:23"
    assert load(Path("child.toml"), REGISTRY, "large")[0].backbone.num_hidden_layers == 9


def test_a_table_whose_type_changes_starts_afresh(recipe):
    text = (
        GOOD.replace('type = "scenes"', 'type = "scenes"\ntrain_size = 5')
        + '[profiles.small.data]\ntype = "vqa"\nfolder = "x"\n'
    )
    loaded, _ = load(recipe(text), REGISTRY)
    assert loaded.data.type == "vqa"


def test_recipes_of_other_editors(recipe):
    recipe().write_text(f'description = "é"\n{GOOD}', encoding="utf-8-sig")
    assert load(Path("my.toml"), REGISTRY)[0].description == "é"
    Path("my.toml").write_text(GOOD, encoding="utf-16")
    assert mistakes(Path("my.toml")) == ["my.toml: cannot be read: not UTF-8"]


def test_updates_decide_over_epochs_in_whatever_layer(recipe):
    """So do updates of warm-up over a share; 0 is off."""
    text = GOOD.replace("learning_rate = 1e-4", "updates = 7") + "[profiles.large.training]\nwarmup_updates = 9\n"

    def lengths(*sets, profile="large"):
        loaded, _ = load(recipe(text), REGISTRY, profile, sets=sets)
        assert from_values(loaded.identity(), REGISTRY, "recipe.json").identity() == loaded.identity()
        return [(step.training.updates, step.training.warmup_updates) for step in loaded.steps.values()]

    assert lengths(profile=None) == [(None, None), (7, None)]
    assert lengths() == [(None, 9), (7, 9)]
    assert lengths("training.warmup_updates=0", "steps.second.training.updates=0") == [(None, 0), (0, 0)]


def test_a_profile_extends_another(recipe):
    """It overrides that profile, which may be in the parent recipe, in any order in the file."""
    larger = '[profiles.larger]\nextends = "large"\n[profiles.larger.backbone]\nhidden_size = 960\n'
    path = recipe(GOOD.replace("[profiles.small.backbone]", f"{larger}[profiles.small.backbone]"))
    loaded, layers = load(path, REGISTRY, "larger")
    assert (loaded.backbone.num_hidden_layers, loaded.backbone.hidden_size, loaded.profile) == (9, 960, "larger")
    assert layers.place(("backbone", "num_hidden_layers")).startswith(str(path))
    largest = '[profiles.largest]\nextends = "larger"\n[profiles.largest.training]\nepochs = 9'
    child, _ = load(recipe(f'extends = "{path.name}"\n{largest}', "child.toml"), REGISTRY, "largest")
    assert (child.backbone.hidden_size, child.training.epochs) == (960, 9)


@pytest.mark.parametrize(
    ("extends", "message"),
    [
        ('"lage"', "profile: unknown name 'lage'; did you mean 'large'?; choose from: small, large"),
        ("3", "profile: unknown name '3'; choose from: small, large"),
        ('"small"', "the profile 'small' extends itself through small"),
    ],
)
def test_a_profile_that_cannot_be_extended(recipe, extends, message):
    text = GOOD.replace(
        "[profiles.small.backbone]", f"[profiles.small]\nextends = {extends}\n[profiles.small.backbone]"
    )
    (line,) = mistakes(recipe(text))
    assert re.fullmatch(rf".*my\.toml:\d+: profiles\.small\.extends: {re.escape(message)}", line), line


@pytest.mark.parametrize("sets", [("profile=large",), ()])
def test_a_profile_is_chosen_by_an_option(recipe, sets):
    text = GOOD if sets else GOOD + "[profiles.small]\nprofile = 'large'\n"
    place = "--set profile=large" if sets else "my.toml:27"
    assert mistakes(recipe(text), sets=sets) == [
        f"{place}: profile: choose one with --profile, or extend one with extends"
    ]


def test_a_recipe_that_extends_itself(recipe):
    recipe('extends = "b.toml"', "a.toml")
    recipe('extends = "a.toml"', "b.toml")
    assert "the recipes extend each other" in mistakes(Path("a.toml"))[0]


def test_a_setting_nested_without_end_is_reported(recipe):
    (message,) = mistakes(recipe(GOOD), sets=(f"x={'[' * 100_000}",))
    assert message.startswith("--set x=") and "cannot be read: nested too deeply" in message


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85"])
def test_a_line_ends_where_toml_ends_it(sign):
    assert lines(f"a = 1 # {sign} x\nb = '{sign}'\r\nc = 3\n") == {("a",): 1, ("b",): 2, ("c",): 3}


def test_lines_of_keys_tables_and_entries_of_lists():
    text = """\
a = 1
[b]
c = [
  1, # x = 2
]
"e f" = \'\'\'
not = 1
\'\'\'
[b.g]
h.i = 3
[[k.l]]
m = 1
[k.l.n]
[[k.l]]
o = [
  { p = [1, { q = 2 }] }, { p = "{" },
  # { }
  { p = 4 },
]
"""
    expected = """\
a 1 b 2 b.c 3 b.e f 6 b.g 9 b.g.h 10 b.g.h.i 10 k 11 k.l 11 k.l.0 11 k.l.0.m 12 k.l.0.n 13 k.l.1 14 k.l.1.o 15
k.l.1.o.0 16 k.l.1.o.0.p 16 k.l.1.o.0.p.1 16 k.l.1.o.0.p.1.q 16 k.l.1.o.1 16 k.l.1.o.1.p 16 k.l.1.o.2 18
k.l.1.o.2.p 18"""
    assert [f"{'.'.join(key)} {line}" for key, line in lines(text).items()] == re.findall(r"\S+(?: f)? \d+", expected)
