"""The number of threads of a run: the rule, its exceptions, and that a run prints and keeps the number."""

import json
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
    assert said.startswith(f"computing with {count} thread")
    assert "--threads sets another number" in said


@pytest.mark.parametrize("model, jobs, count", [(SMALL, 2, 1), (LARGE, 2, 1), (LARGE, 4, 1)])
def test_jobs_share_what_nobody_has_chosen(model, jobs, count):
    said = threads.choose_threads(threads.AUTO, model, jobs)
    assert torch.get_num_threads() == count
    assert said.startswith(f"computing, up to {jobs} steps side by side, each with {count} thread; ")
    assert "each with 3 threads" in threads.choose_threads(3, model, jobs) and torch.get_num_threads() == 3


def run(folder: Path, *arguments: str) -> tuple[str, dict]:
    """The message of a toy run, and its environment."""
    (folder / "toy.toml").write_text(toys.RECIPE)
    done = toys.mmgen_here(folder, "run", "toy.toml", "--step", "first", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads((folder / PLACE / "environment.json").read_text())
