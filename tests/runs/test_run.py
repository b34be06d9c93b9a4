"""Complete runs on a few scenes: their files, and that a kill, a resume or a full disk changes nothing."""

import json
import re
import shutil
import signal
from pathlib import Path

import pytest
from kit import forked, toys
from kit.toys import PLACE, weights
from kit.toys import mmgen_here as mmgen

from mmgen.files import locked

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_page")]  # every test starts commands or processes

TRAINING = {"micro_batch_size": 6, "epochs": 2, "checkpoint_every": 2}
RECIPE = toys.recipe(training=TRAINING)
FILES = {"weights.safetensors", "generations.jsonl", "scores.json", "log.jsonl"}
STEPS = {
    "first": {"inputs": ["caption"], "train": ["backbone"]},
    "third": {"inputs": ["caption"], "train": ["backbone"], "start": "first"},
    "second": {"inputs": ["caption"], "train": ["backbone"], "start": "first"},
}


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory) -> Path:
    """A folder with a finished, undisturbed run."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "toy.toml").write_text(RECIPE)
    done = forked.run(forked.MMGEN, "run", "toy.toml", folder=folder)
    assert done.returncode == 0, done.stderr
    return folder


def same_to_the_bit(first: Path, second: Path, steps=("first", "second")) -> None:
    for step in steps:
        a, b = weights(first, step), weights(second, step)
        assert a.keys() == b.keys() and all(a[name].equal(b[name]) for name in a)
    for file in (
        "table.md",
        *(f"steps/{step}/{name}" for step in steps for name in ("generations.jsonl", "scores.json")),
    ):
        assert (first / PLACE / file).read_text() == (second / PLACE / file).read_text(), file


def test_a_run_leaves_what_the_design_says(finished_run):
    for name in ("recipe.json", "environment.json", "data.json", "inputs.json", "table.md", "backbone/config.json"):
        assert (finished_run / PLACE / name).exists(), name
    for step in ("first", "second"):
        assert {path.name for path in (finished_run / PLACE / "steps" / step).iterdir()} == FILES
    log = [json.loads(line) for line in (finished_run / PLACE / "steps/first/log.jsonl").read_text().splitlines()]
    assert [record["update"] for record in log] == list(range(len(log)))
    assert log[-1]["loss"] < log[0]["loss"] and "validation_loss" in log[-1]
    assert not list((finished_run / PLACE).rglob("*.partial"))


def test_a_step_that_is_added_is_trained_alone_as_in_a_run_from_scratch(finished_run, tmp_path):
    (tmp_path / "more.toml").write_text(toys.recipe(training=TRAINING, steps=STEPS))
    shutil.copytree(finished_run / "runs", tmp_path / "runs")
    untouched = [tmp_path / PLACE / f"steps/{step}/weights.safetensors" for step in ("first", "second")]
    before = [path.stat().st_mtime_ns for path in untouched]
    added = mmgen(tmp_path, "run", "more.toml")
    assert added.returncode == 0 and "third: writing" in added.stdout, added.stderr
    assert "first: writing" not in added.stdout and "second: writing" not in added.stdout
    assert [path.stat().st_mtime_ns for path in untouched] == before
    assert "| third " in (tmp_path / PLACE / "table.md").read_text()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    assert mmgen(scratch, "run", "../more.toml").returncode == 0
    same_to_the_bit(tmp_path, scratch, ("first", "second", "third"))
    refused = mmgen(tmp_path, "run", str(finished_run / "toy.toml"))
    assert refused.returncode == 1 and refused.stderr.splitlines()[1].startswith("  steps.third: {"), refused.stderr


@pytest.mark.parametrize(
    ("moment", "how"),
    [
        ("steps/first/checkpoint.safetensors", signal.SIGKILL),
        ("steps/second/checkpoint.safetensors", signal.SIGINT),
    ],
)
def test_a_stopped_run_goes_on_and_ends_the_same_to_the_bit(finished_run, tmp_path, moment, how):
    """`python -m tools.kills` does more of this, at random moments."""
    (tmp_path / "toy.toml").write_text(RECIPE)
    stopped = forked.stop_at(PLACE / moment, how, "run", "toy.toml", folder=tmp_path)
    said = stopped.stderr
    assert (tmp_path / PLACE / moment).exists() and not (tmp_path / PLACE / "steps/second/scores.json").exists()
    if how is not signal.SIGKILL:
        assert said.endswith("error: stopped; run the same command again to resume from the last checkpoint\n")
        assert "Traceback" not in said and stopped.returncode == 1
    left = tmp_path / PLACE / "steps/first"
    (left / ".checkpoint.safetensors.123.partial").write_text("a kill left this")
    toys.ran(tmp_path)
    same_to_the_bit(finished_run, tmp_path)
    assert {path.name for path in left.iterdir()} == FILES


KILLED_WHILE_WRITING = """
    import os, signal, sys
    from pathlib import Path
    from mmgen.cli import main
    wanted, replace = sys.argv.pop(1), Path.replace

    def die(path, target):
        if path.name.startswith(f".{wanted}."):
            os.kill(os.getpid(), signal.SIGKILL)
        return replace(path, target)

    Path.replace = die
    main()
"""


@pytest.mark.exhaustive
def test_killed_while_a_file_is_written_again_and_again(finished_run, tmp_path):
    """The file exists under its temporary name, and the next run starts with it."""
    (tmp_path / "toy.toml").write_text(RECIPE)
    for name in ("checkpoint.safetensors", "weights.safetensors", "generations.jsonl", "scores.json", "table.md"):
        killed = forked.run(KILLED_WHILE_WRITING, name, "run", "toy.toml", folder=tmp_path)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert len(list(tmp_path.rglob(f".{name}.*.partial"))) == 1
    toys.ran(tmp_path)
    same_to_the_bit(finished_run, tmp_path)
    assert not list(tmp_path.rglob("*.partial")) and not list(tmp_path.rglob("checkpoint.safetensors"))


def test_a_checkpoint_that_a_kill_left_beside_the_weights_is_cleared(finished_run, tmp_path):
    shutil.copytree(finished_run, tmp_path, dirs_exist_ok=True)
    spent = tmp_path / PLACE / "steps/first/checkpoint.safetensors"
    spent.write_text("done with")
    toys.ran(tmp_path)
    assert not spent.exists()


def test_a_full_disk_is_reported_and_loses_nothing(finished_run, tmp_path):
    """With a limit of 60 kB per file, weights do not fit but everything else does."""
    (tmp_path / "toy.toml").write_text(RECIPE)
    small = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY)); from "
        "mmgen.cli import main; main()"
    )
    full = forked.run(small, "run", "toy.toml", folder=tmp_path)
    assert full.returncode == 1 and "Traceback" not in full.stderr
    assert re.search(
        r"^error: runs/toy/default/seed-0/steps/first/checkpoint.safetensors: cannot be written: .*File too large.*; "
        r"existing files are unchanged; "
        r"re-run the same command to continue$",
        full.stderr,
        re.MULTILINE,
    )
    assert not list(tmp_path.rglob("*.partial"))
    toys.ran(tmp_path)
    same_to_the_bit(finished_run, tmp_path)


def test_two_runs_in_one_folder_are_refused(finished_run):
    with locked(finished_run / PLACE / ".lock", lambda holder: None):
        refused = mmgen(finished_run, "run", "toy.toml")
    message = "error: runs/toy/default/seed-0: another run is writing in this folder; wait for its end, or stop it\n"
    assert (refused.returncode, refused.stderr) == (1, message)
