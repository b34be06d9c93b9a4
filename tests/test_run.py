"""Whole runs on a few scenes: what they leave behind, and that a kill, a resume or a second process changes nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

RECIPE = """\
name = "toy"
[backbone]
type = "bert"
layers = 1
width = 32
heads = 2
[inputs.caption]
type = "text"
[generator]
type = "masked"
max_tokens = 12
[training]
batch_size = 16
micro_batch = 6
epochs = 2
learning_rate = 1e-3
checkpoint_every = 2
[steps.first]
inputs = ["caption"]
learn = ["backbone"]
[steps.second]
inputs = ["caption"]
learn = ["backbone"]
start = "first"
[data]
type = "scenes"
train_size = 24
val_size = 4
test_size = 6
[metrics.meaning]
type = "discovery"
"""
PLACE = Path("runs/toy/default/seed-0")


def mmgen(folder: Path, *arguments: str, processes: int = 1) -> subprocess.CompletedProcess:
    launcher = ["-m", "accelerate.commands.launch", "--cpu", f"--num_processes={processes}", "--num_machines=1", "--mixed_precision=no", "--dynamo_backend=no", "--main_process_port=0", "-m"] if processes > 1 else ["-m"]
    return subprocess.run([sys.executable, *launcher, "mmgen", *arguments], cwd=folder, capture_output=True, text=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A folder with a finished run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "toy.toml").write_text(RECIPE)
    done = mmgen(folder, "run", "toy.toml")
    assert done.returncode == 0, done.stderr
    (folder / "said.txt").write_text(done.stdout + done.stderr)
    return folder


def weights(folder: Path, step: str) -> dict:
    return load_file(folder / PLACE / "steps" / step / "weights.safetensors")


def same_to_the_bit(one: Path, other: Path) -> None:
    for step in ("first", "second"):
        a, b = weights(one, step), weights(other, step)
        assert a.keys() == b.keys() and all(a[name].equal(b[name]) for name in a)
        for file in ("generations.jsonl", "scores.json"):
            assert (one / PLACE / "steps" / step / file).read_text() == (other / PLACE / "steps" / step / file).read_text()
    assert (one / PLACE / "table.md").read_text() == (other / PLACE / "table.md").read_text()


def test_a_run_leaves_what_the_design_says(whole):
    for name in ("recipe.json", "environment.json", "data.json", "inputs.json", "table.md", "backbone/config.json"):
        assert (whole / PLACE / name).exists(), name
    for step in ("first", "second"):
        files = {path.name for path in (whole / PLACE / "steps" / step).iterdir()}
        assert files == {"weights.safetensors", "generations.jsonl", "scores.json", "log.jsonl"}
    log = [json.loads(line) for line in (whole / PLACE / "steps/first/log.jsonl").read_text().splitlines()]
    assert [record["update"] for record in log] == list(range(len(log)))
    assert log[-1]["loss"] < log[0]["loss"] and "validation_loss" in log[-1]
    assert not list((whole / PLACE).rglob("*.partial"))


def test_a_run_says_what_it_does(whole):
    said = (whole / "said.txt").read_text()
    assert "not pretrained" in said
    assert "| first " in said and "| people" in said and "everything is in runs/toy/default/seed-0" in said


def test_a_second_run_says_that_all_is_done(whole):
    again = mmgen(whole, "run", "toy.toml")
    assert again.returncode == 0 and "nothing to do: all steps are done" in again.stdout and "| second" in again.stdout


def test_a_changed_recipe_is_refused_with_the_difference(whole):
    refused = mmgen(whole, "run", "toy.toml", "--set", "training.epochs=3")
    assert refused.returncode == 1 and "Traceback" not in refused.stderr
    assert refused.stderr.splitlines() == [
        "error: runs/toy/default/seed-0 holds a run of another recipe; use --fresh to do it anew, or another name:",
        "  training.epochs: 2 -> 3",
        "  steps.first.training.epochs: 2 -> 3",
        "  steps.second.training.epochs: 2 -> 3",
    ]


def test_settings_that_cannot_change_the_result_are_no_other_recipe(whole):
    assert mmgen(whole, "run", "toy.toml", "--set", "training.workers=2").returncode == 0


@pytest.mark.parametrize("moment", ["steps/first/checkpoint.safetensors", "steps/first/weights.safetensors", "steps/second/checkpoint.safetensors"])
def test_a_killed_run_goes_on_and_ends_the_same_to_the_bit(whole, tmp_path, moment):
    (tmp_path / "toy.toml").write_text(RECIPE)
    process = subprocess.Popen([sys.executable, "-m", "mmgen", "run", "toy.toml"], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 120
    while not (tmp_path / PLACE / moment).exists() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert (tmp_path / PLACE / moment).exists() and not (tmp_path / PLACE / "steps/second/scores.json").exists()
    finished = mmgen(tmp_path, "run", "toy.toml")
    assert finished.returncode == 0, finished.stderr
    same_to_the_bit(whole, tmp_path)


def test_loader_workers_change_no_bit(whole, tmp_path):
    (tmp_path / "toy.toml").write_text(RECIPE)
    done = mmgen(tmp_path, "run", "toy.toml", "--set", "training.workers=2")
    assert done.returncode == 0, done.stderr
    same_to_the_bit(whole, tmp_path)


def test_two_processes_give_what_one_gives(whole, tmp_path):
    (tmp_path / "toy.toml").write_text(RECIPE)
    done = mmgen(tmp_path, "run", "toy.toml", processes=2)
    assert done.returncode == 0, done.stderr
    for step in ("first", "second"):
        one, two = weights(whole, step), weights(tmp_path, step)
        for name in one:
            assert (one[name] - two[name]).abs().max() < 1e-4, name
    logs = [[json.loads(line) for line in (folder / PLACE / "steps/second/log.jsonl").read_text().splitlines()] for folder in (whole, tmp_path)]
    for one, two in zip(*logs, strict=True):
        assert one["loss"] == pytest.approx(two["loss"], abs=1e-4)


def test_a_data_set_without_a_validation_split_is_learnt_all_the_same(tmp_path):
    (tmp_path / "toy.toml").write_text(RECIPE)
    done = mmgen(tmp_path, "run", "toy.toml", "--step", "first", "--set", 'data.validate_on="none"')
    assert done.returncode == 0, done.stderr


def test_a_run_that_failed_before_it_learnt_claims_nothing(tmp_path):
    (tmp_path / "toy.toml").write_text(RECIPE)
    failed = mmgen(tmp_path, "run", "toy.toml", "--set", 'backbone.weights="nowhere"')
    assert failed.returncode == 1 and "backbone.weights: 'nowhere' cannot be loaded" in failed.stderr and "Traceback" not in failed.stderr
    assert mmgen(tmp_path, "run", "toy.toml", "--step", "first").returncode == 0


def test_two_runs_in_one_folder_are_refused(whole):
    import fcntl

    with (whole / PLACE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused = mmgen(whole, "run", "toy.toml")
    assert refused.returncode == 1
    assert refused.stderr == "error: runs/toy/default/seed-0: another run is writing here; wait for it, or stop it\n"


def test_a_run_is_loaded_and_writes_from_python(whole, monkeypatch):
    monkeypatch.chdir(whole)
    from mmgen.run import load_run
    from mmgen.stages.write import read

    loaded = load_run(PLACE)
    assert loaded.step == "second"
    test = loaded.recipe.data.build().split("test")
    assert loaded.generate(test) == read(PLACE / "steps/second")


def test_a_run_without_its_encoder_is_told(whole, tmp_path):
    import shutil

    from mmgen.errors import RunError
    from mmgen.run import load_run

    shutil.copytree(whole / PLACE, tmp_path / "run", ignore=shutil.ignore_patterns("backbone"))
    with pytest.raises(RunError, match="the encoder's config.json and tokenizer are missing"):
        load_run(tmp_path / "run")


def test_damaged_weights_are_told(whole, tmp_path):
    import shutil

    from mmgen.errors import RunError
    from mmgen.run import load_run

    shutil.copytree(whole / PLACE, tmp_path / "run")
    file = tmp_path / "run/steps/second/weights.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(RunError, match=r"weights.safetensors: damaged: "):
        load_run(tmp_path / "run")
