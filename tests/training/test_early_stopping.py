"""Stopping early, and the best epoch by the validation loss."""

import pytest
from kit import toys
from kit.training import RecordedProgress, step, train_step

from mmgen.training import train as train_module

LOSSES = (3.0, 2.0, 2.5, 2.0, 1.0, 0.5)  # after each epoch
CHOSEN = {"epochs": 6, "checkpoint_every": 1, "batch_size": 24, "micro_batch_size": 24, "keep": "best"}
VALIDATION = toys.examples(3, seed=1)


@pytest.fixture
def scripted(monkeypatch):
    """Replaces validation losses by `LOSSES`."""
    losses = iter(LOSSES)
    monkeypatch.setattr(
        train_module,
        "validate",
        lambda *_: {"validation_loss": next(losses)},
    )


def train_with(folder, patience, model, progress=None):
    chosen = step(**CHOSEN, early_stopping_patience=patience)
    return train_step(folder, model, chosen, progress=progress, validation=VALIDATION)


def ends(log):
    return [record["validation_loss"] for record in log if "validation_loss" in record]


@pytest.mark.parametrize(
    ("patience", "epochs"),
    [(1, 3), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((2, 4), (3, 6), (None, 6)))],
)
def test_a_step_stops_after_epochs_that_are_not_better(tmp_path, scripted, patience, epochs):
    progress = RecordedProgress()
    log = train_with(tmp_path / "s", patience, toys.model(), progress)
    assert ends(log) == [*LOSSES[:epochs]]
    said = f"s: stopped early: {patience} epochs without a lower loss"
    assert progress.lines.count(said) == (epochs < 6)
    assert {path.name for path in (tmp_path / "s").iterdir()} == {"log.jsonl", "weights.safetensors"}


@pytest.mark.slow
def test_it_needs_validation_examples(tmp_path):
    changes = {"training": {"early_stopping_patience": 2}, "data": {"validation_split": "train"}}
    (tmp_path / "toy.toml").write_text(toys.recipe(**changes))
    done = toys.mmgen_here(tmp_path, "run", "toy.toml")
    problem = "training.early_stopping_patience: step 'first' has no validation examples; set data.validation_split\n"
    assert done.returncode == 1 and done.stderr.startswith("error: toy.toml:") and done.stderr.endswith(problem)
    assert not list((tmp_path / toys.PLACE).glob("steps/*/*"))
