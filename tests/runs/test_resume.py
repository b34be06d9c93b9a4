"""A step that is stopped at any moment goes on with the same command and ends with the same bytes: its weights, its log
and its texts, in every way to train."""

import contextlib
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest
import torch
from kit import forked, toys
from kit.any_order import any_order
from kit.training import step
from kit.writing import write_texts

from mmgen.data.collate import Source
from mmgen.model import Model
from mmgen.storage import weights
from mmgen.training.train import Trainer, train

EXAMPLES, VALIDATION, OTHERS = toys.examples(16), toys.examples(4, seed=1), toys.examples(11, seed=2)
SCRIPT = "import sys, torch; torch.set_num_threads(1); from test_resume import prove; prove(sys.argv[1], killed=True)"


@dataclass
class Setting:
    """A way to train. `memory`: for how many examples at a time, from update 3 on."""

    training: dict
    model: object = lambda: toys.model(dropout=0.3)
    sources: tuple = (Source(EXAMPLES, VALIDATION),)
    memory: int | None = None


BASE = {"epochs": 2, "checkpoint_every": 2, "micro_batch_size": 12, "num_workers": 0}
SETTINGS = {
    "plain": Setting({}),
    "accumulation": Setting({"micro_batch_size": 4, "length_bucket": 2, "keep": "best"}),
    "mixture": Setting(
        {"micro_batch_size": 4},
        sources=(
            Source(EXAMPLES, VALIDATION, name="pairs"),
            Source([toys.Example(f"o{e.id}", e.inputs, e.targets) for e in OTHERS], share=0.5, name="others"),
        ),
    ),
    "bf16": Setting({"precision": "bf16"}),
    "halved": Setting({"micro_batch_size": 6}, memory=1),
    "any order": Setting({"micro_batch_size": 6}, model=any_order),
    "early stopping": Setting({"epochs": 9, "early_stopping_patience": 1, "keep": "best", "learning_rate": 0.1}),
    "other optimiser": Setting({"optimizer": "sgd", "momentum": 0.9, "clip": "each", "freeze": ("*.LayerNorm.*",)}),
}


def outcome(setting: Setting, folder: Path, sigterm_before=None, sigkill_at=None) -> dict[str, bytes]:
    """Trains the step as far as it is not trained, and writes texts: the contents of all files. It gets SIGTERM before
    an update, or SIGKILL while it writes a checkpoint."""
    folder.mkdir(exist_ok=True)
    update, write, forward, checkpoints, limit = Trainer.update, weights.save_file, Model.forward, [], [99]

    def stopped(trainer, number, *arguments):
        limit[0] = setting.memory if setting.memory and number >= 3 else 99
        if number == sigterm_before:
            os.kill(os.getpid(), signal.SIGTERM)
        return update(trainer, number, *arguments)

    def killed(tensors, partial, metadata):
        checkpoints.extend([1] * ("checkpoint" in partial.name))
        if len(checkpoints) == sigkill_at:
            partial.write_bytes(b"half")
            os.kill(os.getpid(), signal.SIGKILL)
        write(tensors, partial, metadata)

    def cramped(model, batch):
        if torch.is_grad_enabled() and batch.size > limit[0]:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(model, batch)

    model, chosen = setting.model(), step(**{**BASE, **setting.training})
    patches = ((Trainer, "update", stopped), (weights, "save_file", killed), (Model, "forward", cramped))
    with contextlib.ExitStack() as stack:
        for patch in patches:
            stack.enter_context(mock.patch.object(*patch))
        train(model, toys.context(folder, chosen), setting.sources)
    write_texts(folder, model, model.decoding)
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(".partial")}


def prove(name: str, killed: bool = False) -> None:
    """Trains with a setting, undisturbed and stopped in two ways. `killed`: and by SIGKILL, in a process of its own."""
    setting = SETTINGS[name]
    if killed:
        if not (child := os.fork()):  # before anything is computed here
            outcome(setting, Path("killed"), sigkill_at=2)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    undisturbed = outcome(setting, Path("undisturbed"))
    assert sorted(undisturbed) == ["generations.jsonl", "log.jsonl", "weights.safetensors"]
    log = undisturbed["log.jsonl"].decode()
    updates = int(len(log.splitlines()) / (int(float(log.rpartition('"epoch": ')[2].partition(",")[0])) + 1))
    for folder, number in (("inside", 1), ("at the end", updates - 1)):
        with contextlib.suppress(KeyboardInterrupt):
            outcome(setting, Path(folder), sigterm_before=number)
            sys.exit(f"not stopped {folder}")
    for folder in (*["killed"] * killed, "inside", "at the end"):
        assert (Path(folder) / "checkpoint.safetensors").exists(), folder
        resumed = outcome(setting, Path(folder))
        different = [file for file in undisturbed | resumed if undisturbed.get(file) != resumed.get(file)]
        assert not different, (folder, different)
    assert ('"micro_batch_size"' in log) == (name == "halved")
    assert (log.count("validation_loss") < 9) or name != "early stopping"


@pytest.fixture(scope="module")
def proofs(request, tmp_path_factory):
    """A process for every setting that is tested."""
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    tested = [item for item in request.session.items if "proofs" in getattr(item, "fixturenames", ())]
    return {
        name: forked.Process(SCRIPT, name, folder=tmp_path_factory.mktemp("resume"), PYTHONPATH=path)
        for name in [item.callspec.params["name"] for item in tested]
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_a_stopped_or_killed_step_ends_with_the_same_bytes(proofs, name):
    done = proofs[name].finish()
    assert done.returncode == 0, done.stderr


def test_a_stopped_step_ends_with_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prove("accumulation")
