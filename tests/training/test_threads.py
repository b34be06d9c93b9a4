"""The number of threads of a run: the rule, its exceptions, and that a run prints and keeps the number."""

import json
import os
from pathlib import Path

import pytest
import torch
from kit import toys
from torch import nn

from mmgen.training import threads

SMALL, LARGE = nn.Linear(10, 10), nn.Linear(threads.SMALL, 1, device="meta")
PLACE = Path("runs/toy/default/seed-0")


@pytest.fixture(autouse=True)
def nobody_asks(monkeypatch):
    """An environment without a setting; torch's own setting is two."""
    for name in threads.ASKED:
        monkeypatch.delenv(name, raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("model, count", [(SMALL, 1), (LARGE, 2)])
def test_the_size_of_the_model_decides(model, count):
    said = threads.choose_threads(threads.AUTO, model)
    assert torch.get_num_threads() == count
    assert said.startswith(f"computing with {count} thread") and f" on {threads.cores()} core" in said
    assert "--threads sets another number" in said


@pytest.mark.parametrize("model, jobs, count", [(SMALL, 2, 1), (LARGE, 2, 1), (LARGE, 4, 1)])
def test_jobs_share_what_nobody_has_chosen(model, jobs, count):
    said = threads.choose_threads(threads.AUTO, model, jobs)
    assert torch.get_num_threads() == count
    assert said.startswith(f"computing, up to {jobs} steps side by side, each with {count} thread on ")
    assert "each with 3 threads on" in threads.choose_threads(3, model, jobs) and torch.get_num_threads() == 3


@pytest.mark.parametrize("model", [SMALL, LARGE])
def test_a_number_holds_for_any_model_and_from_the_start(model):
    threads.use_threads(3)
    assert torch.get_num_threads() == 3
    assert "computing with 3 threads" in threads.choose_threads(3, model) and torch.get_num_threads() == 3


@pytest.mark.parametrize("name", threads.ASKED)
def test_whoever_has_set_a_variable_has_chosen(monkeypatch, name):
    monkeypatch.setenv(name, "2")
    threads.choose_threads(threads.AUTO, SMALL)
    assert torch.get_num_threads() == 2


def test_in_python_torch_s_own_setting_holds():
    assert "computing with 2 threads" in threads.choose_threads(None, SMALL)
    assert torch.get_num_threads() == 2


def run(folder: Path, *arguments: str) -> tuple[str, dict]:
    """The message of a toy run, and its environment."""
    (folder / "toy.toml").write_text(toys.RECIPE)
    done = toys.mmgen_here(folder, "run", "toy.toml", "--step", "first", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads((folder / PLACE / "environment.json").read_text())


@pytest.mark.slow
@pytest.mark.usefixtures("no_page")
def test_a_run_says_its_threads_and_keeps_them(tmp_path):
    said, saved = run(tmp_path)
    assert "computing with 1 thread on" in said and saved["threads"] == 1
    said, saved = run(tmp_path, "--fresh", "--threads", "2")
    assert "computing with 2 threads on" in said and saved["threads"] == 2


@pytest.mark.slow
@pytest.mark.usefixtures("no_page")
def test_a_resume_with_another_number_is_noted(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "2")
        run(tmp_path)
    (tmp_path / PLACE / "steps/first/weights.safetensors").unlink()
    (tmp_path / PLACE / "steps/first/scores.json").unlink()
    said, saved = run(tmp_path)
    assert "computing with 1 thread on" in said and saved["threads"] == 1


def test_threads_that_wait_sleep_unless_somebody_wants_otherwise(monkeypatch):
    from click.testing import CliRunner

    from mmgen.cli import main

    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    CliRunner().invoke(main, ["plugins"])
    assert os.environ["OMP_WAIT_POLICY"] == "passive"
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    CliRunner().invoke(main, ["plugins"])
    assert os.environ["OMP_WAIT_POLICY"] == "active"


@pytest.mark.parametrize(
    ("device", "cores", "processes", "workers"),
    [
        ("cpu", 16, 1, 0),
        ("cuda", 16, 1, 4),
        ("cuda", 16, 8, 1),
        ("cuda", 3, 1, 2),
        ("cuda", 1, 1, 0),
        ("cuda", 4, 8, 0),
    ],
)
def test_loader_workers_by_default(device, cores, processes, workers, monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: cores)
    assert threads.default_workers(torch.device(device), processes) == workers
