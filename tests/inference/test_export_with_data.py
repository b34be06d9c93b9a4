"""Exports with the data of a recipe: result files are those of the run."""

import json

import pytest
from click.testing import CliRunner
from kit import small_runs, toys
from kit.refusals import refusal

import mmgen
from mmgen.cli import main
from mmgen.errors import DataError, RunError
from mmgen.inference.result_file import result_file

pytestmark = pytest.mark.slow  # the data are drawn, and their features extracted


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    return mmgen.load(small_runs.drawn("writes"), "both").save(tmp_path_factory.mktemp("exports") / "both")


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    return mmgen.load(small_runs.drawn("predicts"), "answers").save(tmp_path_factory.mktemp("exports") / "answers")


def test_a_result_file_is_that_of_the_run(answers):
    run = result_file(small_runs.drawn("predicts"), "vqa", ["answers"])
    assert result_file(answers, "vqa", data=small_runs.recipe_of("predicts")) == run


def test_a_result_file_of_another_task(answers):
    with pytest.raises(RunError) as error:
        result_file(answers, "nlvr2", data=small_runs.recipe_of("predicts"))
    assert str(error.value) == (
        f"{answers}: step 'answers' predicts 'answers', but nlvr2 needs 'truth'; choose another step with --step"
    )


def test_an_extractor_that_there_is_not():
    run = small_runs.drawn("predicts")
    with pytest.raises(DataError) as error:
        result_file(run, "vqa", ["answers"], sets=["inputs.image.extractor.model=evil"])
    assert str(error.value).startswith("timm has no model 'evil'")


def test_another_split(answers):
    rows = json.loads(result_file(answers, "vqa", split="val", data=small_runs.recipe_of("predicts")))
    assert rows and all(row["question_id"].startswith("val-") for row in rows)


def test_a_run_has_data():
    folder = small_runs.drawn("writes")
    with pytest.raises(RunError) as error:
        result_file(folder, "vqa", data=small_runs.recipe_of("writes"))
    assert str(error.value) == f"{folder}: --data is for exports; leave it out for a run, which has its own data"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("predict", "both", "--data", "writes.toml"), "--data, --split, and --step more than once, require --as; "),
    ],
)
def test_options_that_do_not_fit(command, message):
    refused = CliRunner().invoke(main, command)
    assert refused.output.startswith(f"error: {message}")


def test_commands(answers, tmp_path):
    out = tmp_path / "out.json"
    options = ("--as", "vqa", "--data", small_runs.recipe_of("predicts"), "--out", out)
    done = toys.mmgen_here(tmp_path, "predict", answers, *options)
    assert done.returncode == 0, done.stderr
    assert out.read_text() == result_file(small_runs.drawn("predicts"), "vqa", ["answers"])


def test_what_needs_data_is_refused_for_an_export(both):
    for command in (["score", both], ["score", both, "--metric", "diversity"], ["probe", both], ["report", both]):
        refused = CliRunner().invoke(main, [*map(str, command)])
        assert refused.exit_code == 1 and refused.output.startswith("error: ") and refused.output.count("\n") == 1
    with pytest.raises(DataError, match="an export has no data; `mmgen predict --as` takes it with --data RECIPE"):
        mmgen.load(both).recipe.data.build()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("inputs=5", "the settings of a trained run are fixed; only decoding.* and an input's extractor, features, "),
        ("inputs.image.extractor=5", "inputs.image.extractor: must be a table"),
    ],
)
def test_settings_that_do_not_fit_are_not_blamed_on_the_export(both, setting, message):
    assert refusal(mmgen.load, both, sets=[setting]).startswith(f"--set {setting}: {message}")
