"""Keys of a recipe that have no effect are named by `mmgen check` and `mmgen run`, with what decides instead."""

from pathlib import Path

import pytest
from kit import toys

PARENT = (
    toys.RECIPE
    + """
profile = "sample"
[profiles.sample.training]
epochs = 4
betas = [0.9, 0.98]
[profiles.sample.backbone]
dropout = 0.0
[profiles.sample.steps.second.training]
learning_rate = 1e-4
[profiles.long]
extends = "sample"
[profiles.long.training]
updates = 9
[profiles.pictures.inputs.image]
type = "regions"
extractor = { type = "roi", model = "test_resnet" }
[profiles.published.backbone]
weights = "../encoder"
""".replace('profile = "sample"\n', "", 1)
)


def place(text: str, file: str = "parent.toml") -> str:
    source = PARENT if file == "parent.toml" else text
    return f"{file}:{source[: source.index(text)].count(chr(10)) + 1}"


def remarks(folder, child: str, *arguments: str, parent: str = PARENT, command: str = "check") -> list[str]:
    """What a child recipe is told."""
    (folder / "parent.toml").write_text(parent)
    (folder / "child.toml").write_text(f'extends = "parent.toml"\n{child}')
    done = toys.mmgen_here(folder, command, "child.toml", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()


EPOCHS, LONG, RATE = place("epochs = 4"), place("updates = 9"), place("learning_rate = 1e-4")
REGIONS = place('type = "regions"')
TYPE, WEIGHTS = place('extractor = { type = "roi"'), place('weights = "../encoder"')


@pytest.mark.parametrize(
    ("child", "expected"),
    [
        (
            "[training]\nepochs = 8",  # in both profiles; a key that replaces it overrides it too
            [
                f"child.toml:3: training.epochs has no effect: profile sample, {EPOCHS}, sets 4",
                f"child.toml:3: training.epochs has no effect: profile long, {LONG}, sets training.updates = 9",
            ],
        ),
        ("[training]\nepochs = 4", ["child.toml:3: training.epochs has no effect: profile long"]),  # sample agrees
        ("training = { betas = [0.8, 0.9] }", [f"sample, {place('betas')}, sets [0.9, 0.98]"]),
        ("[backbone]\ndropout = 0.5", [f"profile sample, {place('dropout')}, sets 0.0"]),
        (
            '[inputs.image]\ntype = "grid"\nnormalize = "none"\nextractor = { type = "timm_grid" }',
            [
                f'child.toml:3: inputs.image.type has no effect: profile pictures, {REGIONS}, sets "regions"',
                f"child.toml:4: inputs.image.normalize has no effect: profile pictures, {REGIONS}, sets "
                'inputs.image.type = "regions"',
                f'child.toml:5: inputs.image.extractor.type has no effect: profile pictures, {TYPE}, sets "roi"',
            ],
        ),
        ("[backbone]\nvocab_size = 90", [f'profile published, {WEIGHTS}, sets backbone.weights = "../encoder"']),
        (
            "[profiles.sample.training]\nlearning_rate = 3e-4",  # of one step
            [
                "child.toml:3: profiles.sample.training.learning_rate has no effect on step second: profile sample, "
                f"{RATE}, sets steps.second.training.learning_rate = 0.0001"
            ],
        ),
        (
            "[profiles.mine]\nextends = 'sample'\n[profiles.mine.training]\nepochs = 8",
            [],
        ),
        ("[profiles.new.training]\nepochs = 8", []),
        ('[profiles.sample.backbone]\nweights = "encoder"', []),  # the parent's sizes are not the child's
        (
            '[profiles.sample.backbone]\nweights = "encoder"\nhidden_size = 64',
            [
                "child.toml:4: profiles.sample.backbone.hidden_size has no effect: profile sample, child.toml:3, sets "
                'backbone.weights = "encoder"'
            ],
        ),
    ],
)
def test_a_key_of_a_child_that_its_parent_overrides(tmp_path, child, expected):
    toys.model().backbone.save(tmp_path / "encoder")
    found = remarks(tmp_path, child)
    assert len(found) == len(expected) and all(text in line for line, text in zip(found, expected, strict=True)), found


def test_a_setting_that_steps_override(tmp_path):
    parent = toys.recipe(steps={"one": {"inputs": ["caption"], "train": ["backbone"], "training": {"epochs": 1}}})
    line = parent[: parent.index("[steps.one.training]")].count("\n") + 2
    found = remarks(tmp_path, "", "--set", "training.epochs=3", parent=parent)
    assert found == [
        f"--set training.epochs=3: training.epochs has no effect: parent.toml:{line}, sets "
        "steps.one.training.epochs = 1"
    ]


STEP_DATA = toys.recipe(
    steps={
        "one": {"inputs": ["caption"], "train": ["backbone"], "data": {"type": "scenes", "train_size": 9}},
        "two": {"inputs": ["caption"], "train": ["backbone"]},
    }
)


@pytest.mark.parametrize(
    ("child", "remark"),
    [
        ("[data]\ntrain_size = 8", "child.toml:3: data.train_size has no effect on the training of step one: "),
        ('[data]\ntest_split = "val"', None),
        ("[data]\ntrain_size = 8\n[steps.one.data]\nimage_size = 64", None),  # the child has changed it itself
    ],
)
def test_data_that_those_of_a_step_replace(tmp_path, child, remark):
    line = STEP_DATA[: STEP_DATA.index("[steps.one.data]")].count("\n") + 1
    sets = f'parent.toml:{line}, sets steps.one.data = {{"type": "scenes", "train_size": 9}}'
    assert remarks(tmp_path, child, parent=STEP_DATA) == ([remark + sets] if remark else [])


def test_show_and_a_recipe_with_mistakes_name_keys_without_effect_too(tmp_path):
    line = f"child.toml:3: training.epochs has no effect: profile sample, {EPOCHS}, sets 4"
    assert remarks(tmp_path, "[training]\nepochs = 8", "--profile", "sample", command="show") == [line]
    (tmp_path / "child.toml").write_text('extends = "parent.toml"\n[training]\nepochs = 8\n[sequence]\nlength = 1')
    for command in (["check", "child.toml"], ["show", "child.toml", "--profile", "sample"]):
        done = toys.mmgen_here(tmp_path, *command)
        assert done.returncode == 1 and line in done.stderr.splitlines(), done.stderr
    (tmp_path / "child.toml").write_text('training = 3\nsteps = 4\ndata = "x"\n')
    assert "training: must be a table" in toys.mmgen_here(tmp_path, "check", "child.toml").stderr


def test_defaults_that_the_profiles_of_their_own_file_override_give_no_remark(tmp_path):
    (tmp_path / "alone.toml").write_text(PARENT)
    done = toys.mmgen_here(tmp_path, "check", "alone.toml", "--set", "training.batch_size=8")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_recipes_that_come_with_mmgen_have_only_keys_with_an_effect():
    recipes = sorted(str(path) for path in (Path(__file__).parents[2] / "recipes").glob("*.toml"))
    done = toys.mmgen_here(Path(), "check", *recipes)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_run_says_it_too(tmp_path, caplog):
    remarks(tmp_path, "[training]\nlearning_rate = 1e-4", "--profile", "sample", "--step", "first", command="run")
    lines = [message for message in caplog.messages if "has no effect" in message]
    assert lines == []
    remarks(tmp_path, "[training]\nepochs = 1", "--profile", "sample", "--step", "first", "--fresh", command="run")
    lines = [message for message in caplog.messages if "has no effect" in message]
    assert lines == [f"child.toml:3: training.epochs has no effect: profile sample, {EPOCHS}, sets 4"]


def test_decoding_that_a_step_of_the_parent_has_for_itself(tmp_path):
    parent = PARENT + '[steps.beams]\nstart = "second"\ntrain = []\n[steps.beams.decoding]\nnum_beams = 3\n'
    line = 1 + parent[: parent.index("num_beams = 3")].count("\n")
    assert remarks(tmp_path, "[decoding]\nnum_beams = 2\nlength_penalty = 0.5", parent=parent)[0] == (
        f"child.toml:3: decoding.num_beams has no effect on step beams: parent.toml:{line}, "
        "sets steps.beams.decoding.num_beams = 3"
    )


def test_a_table_that_the_table_of_a_step_replaces(tmp_path):
    rates = {"learning_rates": {"*.bias": 1e-3}}
    step = {"inputs": ["caption"], "train": ["backbone"], "training": {"learning_rates": {"*.bias": 1e-4}}}
    parent = toys.recipe(training=rates, steps={"one": step})
    child = '[training.learning_rates]\n"*.dense.*" = 1e-2\n'
    (line,) = remarks(tmp_path, child, parent=parent)
    assert line.startswith("child.toml:3: training.learning_rates.*.dense.* has no effect: parent.toml:")
    assert line.endswith('sets steps.one.training.learning_rates = {"*.bias": 0.0001}')
    step_too = '[steps.one.training.learning_rates]\n"*.dense.*" = 1e-2\n'
    assert remarks(tmp_path, child + step_too, parent=parent) == []
