"""Stopping early, and the best epoch by the validation loss or by a metric."""

import json

import pytest
from kit import toys
from kit.training import RecordedProgress, build_trainer, step, train_step

from mmgen.errors import RunError
from mmgen.training import train as train_module
from mmgen.training.checkpoint import Checkpoint

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
    said = f"s: stopped early: {patience} epoch{'s' * (patience == 2)} without a better validation loss"
    assert progress.lines.count(said) == (epochs < 6)
    assert {path.name for path in (tmp_path / "s").iterdir()} == {"log.jsonl", "weights.safetensors"}


@pytest.mark.slow
@pytest.mark.parametrize(("greater", "best"), [(True, 1), (False, 2)])
def test_a_metric_says_which_epoch_is_best(tmp_path, monkeypatch, greater, best):
    scores, saved = iter([{"other": 0.0, "cider": value} for value in (3.0, 5.0, 1.0)]), []
    monkeypatch.setattr(Checkpoint, "write_best", lambda *_: saved.append(learner.cursor.done))
    chosen = step(
        **{**CHOSEN, "epochs": 3}, metric_for_best_model="cider", greater_is_better=greater, early_stopping_patience=2
    )
    learner = build_trainer(toys.model(), tmp_path, step_config=chosen, validation=VALIDATION)
    learner.scores = lambda model: next(scores)
    learner.run(bool)
    assert saved[-1] == (best + 1) * learner.plan.updates_per_epoch
    assert learner.cursor.records[-1]["validation_scores"] == {"other": 0.0, "cider": 1.0}


@pytest.mark.parametrize(
    ("scores", "problem"),
    [
        ({"cidr": 1.0, "bleu": 2.0}, "; did you mean 'cidr'?; choose from: cidr, bleu"),
        ({"cider": None, "bleu": 2.0}, "; choose from: bleu"),
    ],
)
def test_a_metric_without_a_value(tmp_path, scores, problem):
    chosen = step(**{**CHOSEN, "epochs": 1}, metric_for_best_model="cider")
    learner = build_trainer(toys.model(), tmp_path, step_config=chosen, validation=VALIDATION)
    learner.scores = lambda model: scores
    with pytest.raises(RunError) as error:
        learner.run(bool)
    assert str(error.value) == (
        f"step 's': training.metric_for_best_model: 'cider' has no value on the validation split{problem}"
    )


BEST = {"keep": "best", "metric_for_best_model": "relevance"}


@pytest.mark.slow
@pytest.mark.usefixtures("no_page")
def test_writing_on_validation_changes_no_weight(tmp_path):
    """With dropout, to the bit; the log has the scores of every epoch."""
    rows = {}
    for name, training in (("plain", {"keep": "last"}), ("judged", {**BEST, "keep": "last"})):
        (tmp_path / name).mkdir()
        (tmp_path / name / "toy.toml").write_text(toys.recipe(training={"epochs": 2, **training}))
        assert toys.mmgen_here(tmp_path / name, "run", "toy.toml", "--threads", "1").returncode == 0
        rows[name] = (tmp_path / name / toys.PLACE / "steps/second/log.jsonl").read_text().splitlines()
    weights = [toys.weights(tmp_path / name, "second") for name in rows]
    assert all(tensor.equal(weights[1][name]) for name, tensor in weights[0].items())
    judged = [json.loads(row) for row in rows["judged"]]
    scores = [record.pop("validation_scores") for record in judged if "validation_scores" in record]
    assert judged == [json.loads(row) for row in rows["plain"]]
    assert len(scores) == 2 and all("relevance" in columns for columns in scores)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"training": {"early_stopping_patience": 2}, "data": {"validation_split": "train"}},
            "training.early_stopping_patience: step 'first' has no validation examples; set data.validation_split, or "
            "remove this key",
        ),
        (
            {"training": BEST, "data": {"validation_split": "train"}},
            "training.metric_for_best_model: step 'first' has no validation examples that a metric scores; set "
            "data.validation_split, or remove this key",
        ),
        (
            {"training": BEST, "metrics": {}},
            "training.metric_for_best_model: step 'first' has no validation examples that a metric scores; set "
            "data.validation_split, or remove this key",
        ),
    ],
)
def test_what_cannot_be_judged_is_refused_before_training(tmp_path, changes, problem):
    (tmp_path / "toy.toml").write_text(toys.recipe(**changes))
    done = toys.mmgen_here(tmp_path, "run", "toy.toml")
    assert done.returncode == 1 and done.stderr.startswith("error: toy.toml:") and done.stderr.endswith(f"{problem}\n")
    assert not list((tmp_path / toys.PLACE).glob("steps/*/*"))
