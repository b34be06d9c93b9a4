"""Steps that train on their own data, and steps without a row in the table."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from kit.toys import RECIPE
from safetensors.torch import load_file

import mmgen
from mmgen.cli import main
from mmgen.data.datasets import Datasets
from mmgen.recipe.load import load
from mmgen.registry import installed

pytestmark = pytest.mark.slow  # every test starts commands or processes

WARM = """\
[steps.warm]
inputs = ["caption"]
train = ["backbone"]
evaluate = false
[steps.warm.data]
type = "table"
folder = "{folder}"
test_split = "train"
validation_split = ""
[profiles.cold.steps.warm]
evaluate = true
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("warm")
    lines = [
        {"id": f"w{number}", "caption": f"zebra number {number}", "questions": ["why zebra ?"]} for number in range(8)
    ]
    (folder / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    recipe = RECIPE.replace(
        'inputs = ["caption"]\ntrain = ["backbone"]\n[steps.second]',
        'inputs = ["caption"]\ntrain = ["backbone"]\nstart = "warm"\n[steps.second]',
    )
    (folder / "toy.toml").write_text(recipe + WARM.format(folder=folder))
    done = CliRunner().invoke(
        main, ["run", str(folder / "toy.toml"), "--set", f'output="{folder / "runs"}"'], catch_exceptions=False
    )
    (folder / "said.txt").write_text(done.output)
    return folder


def run(place: Path) -> Path:
    return place / "runs/toy/default/seed-0"


def test_a_step_trains_on_its_own_data_and_has_no_row_in_the_table(place):
    assert {path.name for path in (run(place) / "steps/warm").iterdir()} == {"weights.safetensors", "log.jsonl"}
    assert "warm" not in (run(place) / "table.md").read_text()
    assert json.loads((run(place) / "steps/first/scores.json").read_text())["values"]
    logged = (run(place) / "steps/warm/log.jsonl").read_text().splitlines()
    assert len(logged) == 1  # eight pairs: one update an epoch, where the scenes would make two


def test_the_report_names_it_since_rows_say_that_they_start_from_it(place):
    page = (run(place) / "report.html").read_text(encoding="utf-8")
    legend = [re.sub("<.*?>", "", line).strip() for line in re.findall("<p><b>.*", page)]
    assert (
        legend[:2]
        == [
            "first reads caption; trains backbone; starts from warm.",
            "second reads caption; trains backbone; starts from first.",
        ]
        and "warm (a warm start, not in the table) reads caption; trains backbone; starts from the initial "
        "encoder; has its own data (jsonl)."
        in legend
    )


def test_the_vocabulary_covers_all_training_data(place):
    words = mmgen.load(run(place)).model.backbone.tokenizer.get_vocab()
    assert "zebra" in words and "where" in words


def test_the_next_step_goes_on_from_it(place):
    warm, first = (load_file(run(place) / f"steps/{step}/weights.safetensors") for step in ("warm", "first"))
    far = load_file(run(place) / "steps/second/weights.safetensors")
    moved = [
        max((first_run[name] - second_run[name]).abs().max().item() for name in warm)
        for first_run, second_run in ((warm, first), (warm, far))
    ]
    assert 0 < moved[0] < moved[1]


def test_the_finished_run_is_finished_and_its_default_step_is_a_row(place):
    again = CliRunner().invoke(
        main, ["run", str(place / "toy.toml"), "--set", f'output="{place / "runs"}"'], catch_exceptions=False
    )
    assert "nothing to do: all steps are done" in again.output
    assert mmgen.load(run(place)).step == "second" and mmgen.load(run(place), "warm").step == "warm"


def test_other_data_is_another_run(place, tmp_path):
    (tmp_path / "train.jsonl").write_text('{"id": "x", "caption": "a", "questions": ["b ?"]}\n')
    changed = (place / "toy.toml").read_text().replace(str(place), str(tmp_path))
    (tmp_path / "toy.toml").write_text(changed)
    output = CliRunner().invoke(
        main, ["run", str(tmp_path / "toy.toml"), "--set", f'output="{place / "runs"}"'], catch_exceptions=False
    )
    assert (
        f'steps.warm.data.folder: "{place}" -> "{tmp_path}"' in output.output
        and "the data set's examples have changed" in output.output
    )


def test_mistakes_in_it_are_reported_with_their_line(place, tmp_path):
    text = (place / "toy.toml").read_text()
    (tmp_path / "toy.toml").write_text(text.replace('type = "table"', 'type = "tabel"'))
    output = CliRunner().invoke(main, ["check", str(tmp_path / "toy.toml")], catch_exceptions=False).output
    line = text.splitlines().index("[steps.warm.data]") + 2
    assert output.startswith(
        f"error: {tmp_path}/toy.toml:{line}: steps.warm.data.type: no dataset is called 'jsonk'; did you mean 'jsonl'?"
    )
    (tmp_path / "toy.toml").write_text(text.replace('type = "table"\n', 'type = "table"\nfoldr = 3\n'))
    output = CliRunner().invoke(main, ["check", str(tmp_path / "toy.toml")], catch_exceptions=False).output
    assert "steps.warm.data.foldr: no such key; did you mean 'folder'?" in output


def test_equal_data_of_two_steps_is_built_once(place):
    recipe, _ = load(place / "toy.toml", installed())
    both = recipe.model_copy(update={"steps": {**recipe.steps, "again": recipe.steps["warm"]}})
    datasets = Datasets(both)
    warm, again, first = (datasets.sources(step) for step in ("warm", "again", "first"))
    assert warm["table"].examples is again["table"].examples and warm["table"].validation == ()
    assert first["scenes"].examples == datasets.main.split("train") and len(datasets.scored_by("first")) == 6
    assert Datasets(both).fingerprint() == Datasets(recipe).fingerprint()


def test_captions_are_what_is_written(tmp_path):
    from mmgen_data import Table

    (tmp_path / "train.jsonl").write_text(
        '{"id": "1", "image": "a.jpg", "captions": ["one", "two"], "questions": ["q ?"]}\n{"id": "2", "image": '
        '"b.jpg", "questions": ["q ?"]}\n'
    )
    dataset = Table(folder=tmp_path, test_split="train", validation_split="", targets="captions").build()
    assert [(example.inputs, example.targets) for example in dataset.split("train")] == [
        ({"image": "a"}, ("one", "two"))
    ]


def spoilt(place: Path, tmp_path: Path, lines: list[dict], data: str = "") -> str:
    """The output of a run when the warm step has these lines as training data."""
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = (
        (place / "toy.toml")
        .read_text()
        .replace(f'folder = "{place}"\ntest_split = "train"\nvalidation_split = ""\n', f'folder = "{tmp_path}"\n{data}')
    )
    (tmp_path / "toy.toml").write_text(text)
    return (
        CliRunner()
        .invoke(
            main,
            ["run", str(tmp_path / "toy.toml"), "--set", f'output="{tmp_path / "runs"}"', "--step", "warm"],
            catch_exceptions=False,
        )
        .output
    )


def test_a_run_whose_steps_are_all_without_scores_says_where_losses_are(place, tmp_path):
    sets = [f'output="{tmp_path}"', "steps.first.evaluate=false", "steps.second.evaluate=false"]
    arguments = [word for setting in sets for word in ("--set", setting)]
    done = CliRunner().invoke(main, ["run", str(place / "toy.toml"), "--step", "warm", *arguments])
    assert done.exit_code == 0
    assert done.output.splitlines()[-2] == ("no table and no page yet, because no step with scores is finished")


def test_an_input_that_a_later_step_lacks_is_reported_before_training(place, tmp_path):
    lines = [{"id": "a", "caption": "a", "questions": ["b ?"]}, {"id": "b", "questions": ["b ?"]}]
    output = spoilt(place, tmp_path, lines, 'validation_split = ""\nmissing = "keep"\n')
    assert output.endswith(
        "error: step 'warm', split 'train': 1 of 2 examples have no 'caption' (train-b); remove these examples, or "
        "remove 'caption' from its inputs\n"
    )
    assert "training" not in output


def test_data_of_a_step_needs_no_test_split_and_its_missing_files_are_reported_with_the_step(place, tmp_path):
    lines = [{"id": "a", "caption": "a", "questions": ["b ?"]}]
    title, output = spoilt(place, tmp_path, lines).split("\n", 1)
    assert title.startswith("toy, seed 0 -> ")
    assert output.startswith(f"error: steps.warm.data: JSONL: a file is missing:\n  {tmp_path}/val.jsonl")
    output = spoilt(place, tmp_path, lines, 'validation_split = ""\n')
    assert (
        "no table and no page yet, because no step with scores is finished\n" in output
        and "report.html was not written" not in output
    )
    run = tmp_path / "runs/toy/default/seed-0"
    output = CliRunner().invoke(main, ["report", str(run)], catch_exceptions=False).output
    assert output == f"error: {run}: no step with scores is finished yet; continue with `mmgen run`\n"


def test_the_data_check_lists_what_a_step_reads_of_its_own_data(place):
    output = CliRunner().invoke(main, ["data", "check", str(place / "toy.toml")], catch_exceptions=False).output
    assert "data of step 'warm': 8 examples, 8 targets\n" in output
