"""Steps that train on their own data, and steps without a row in the table."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from kit.toys import RECIPE
from safetensors.torch import load_file

from mmgen.cli import main

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


def test_the_next_step_goes_on_from_it(place):
    warm, first = (load_file(run(place) / f"steps/{step}/weights.safetensors") for step in ("warm", "first"))
    far = load_file(run(place) / "steps/second/weights.safetensors")
    moved = [
        max((first_run[name] - second_run[name]).abs().max().item() for name in warm)
        for first_run, second_run in ((warm, first), (warm, far))
    ]
    assert 0 < moved[0] < moved[1]


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


def test_an_input_that_a_later_step_lacks_is_reported_before_training(place, tmp_path):
    lines = [{"id": "a", "caption": "a", "questions": ["b ?"]}, {"id": "b", "questions": ["b ?"]}]
    output = spoilt(place, tmp_path, lines, 'validation_split = ""\nmissing = "keep"\n')
    assert output.endswith(
        "error: step 'warm', split 'train': 1 of 2 examples have no 'caption'; remove these examples, or remove "
        "'caption' from its inputs (train-b)\n"
    )
    assert "training" not in output


def test_data_of_a_step_needs_no_test_split_and_its_missing_files_are_reported_with_the_step(place, tmp_path):
    lines = [{"id": "a", "caption": "a", "questions": ["b ?"]}]
    title, output = spoilt(place, tmp_path, lines).split("\n", 1)
    assert title.startswith("toy, seed 0 -> ")
    assert output.startswith(f"error: steps.warm.data: table: a file is missing:\n  {tmp_path}/val.jsonl")
    output = spoilt(place, tmp_path, lines, 'validation_split = ""\n')
    assert (
        "no table and no page yet, because no step with scores is finished\n" in output
        and "report.html was not written" not in output
    )
    run = tmp_path / "runs/toy/default/seed-0"
    output = CliRunner().invoke(main, ["report", str(run)], catch_exceptions=False).output
    assert output == f"error: {run}: no step with scores is finished yet; continue with `mmgen run`\n"
