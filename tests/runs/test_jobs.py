"""Steps that train at the same time in child commands: their results, and how they end."""

import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from kit import forked, toys
from kit.toys import PLACE, mmgen_here

from mmgen.runs import jobs
from mmgen.runs.child import Settings
from mmgen.runs.jobs import Jobs
from mmgen.storage.run_folder import RunFolder

slow = pytest.mark.slow  # starts processes
pytestmark = pytest.mark.usefixtures("no_page")

# long enough for a child to hear of a stop before its end, even on a busy machine
RECIPE = toys.three_steps(training={"epochs": 8, "checkpoint_every": 2})

# Children are forks of the run: a command that starts anew imports torch, which is seconds.
FORKING = """
import os, signal, sys
from types import SimpleNamespace
from mmgen.runs import jobs

class Popen:
    def __init__(self, command, pass_fds, stdin, stdout, env, start_new_session):
        self.pid, self.status = os.fork(), None
        if not self.pid:
            os.closerange(3, pass_fds[0])
            os.closerange(pass_fds[0] + 1, 1024)
            os.setsid()
            os.dup2(stdout, 1)
            sys.argv[1:] = command[3:]
            os.environ.clear()
            os.environ.update(env)
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            from mmgen.runs import child
            try:
                child.main()
            finally:
                os._exit(1)

    def wait(self):
        if self.status is None:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status

jobs.subprocess = SimpleNamespace(Popen=Popen, DEVNULL=None)
"""
RUN = f"{FORKING}\nimport mmgen.report; mmgen.report.try_page = lambda *_: None; {forked.MMGEN}"


@pytest.fixture(scope="module")
def sequential(tmp_path_factory) -> Path:
    """A finished run whose steps trained one after the other."""
    folder = tmp_path_factory.mktemp("sequential")
    (folder / "toy.toml").write_text(RECIPE)
    toys.ran(folder)
    return folder


def same(first: Path, second: Path, steps=("first", "second", "apart")) -> None:
    for name in steps:
        ours, theirs = (
            {path.name: path for path in (folder / PLACE / "steps" / name).iterdir()} for folder in (first, second)
        )
        assert ours.keys() == theirs.keys()
        assert [file for file in ours if ours[file].read_bytes() != theirs[file].read_bytes()] == [], name
    assert (first / PLACE / "table.md").read_text() == (second / PLACE / "table.md").read_text()


@slow
def test_steps_side_by_side_are_those_of_a_sequential_run_to_the_byte(sequential, tmp_path, caplog):
    (tmp_path / "toy.toml").write_text(RECIPE)
    done = mmgen_here(tmp_path, "run", "toy.toml", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    same(sequential, tmp_path)
    said = done.stdout + done.stderr
    assert "computing, up to 2 steps side by side, each with 1 thread" in said
    for name in ("first", "second", "apart"):
        assert f"\n{name}: training" in said and (f"\n{name}: scoring" in said) == (name != "apart")
    assert caplog.text.count("built on the spot") == said.count("all files are in") == 1
    assert "nothing to do: all steps are done" in toys.ran(tmp_path, "--jobs", "1")


@slow
def test_a_step_that_fails_is_reported_in_one_line_and_stops_the_others(sequential, tmp_path):
    (tmp_path / "toy.toml").write_text(RECIPE)
    toys.ran(tmp_path, "--step", "first")
    left = tmp_path / PLACE / "steps" / "apart"
    left.mkdir()
    (left / "checkpoint.safetensors").write_bytes(b"no checkpoint")
    failed = forked.run(RUN, "run", "toy.toml", "--jobs", "2", folder=tmp_path)
    assert failed.returncode == 1 and "Traceback" not in failed.stderr
    (message,) = [line for line in failed.stderr.splitlines() if line.startswith("error: ")]
    assert "steps/apart/checkpoint.safetensors: damaged" in message
    (left / "checkpoint.safetensors").unlink()
    toys.ran(tmp_path)
    same(sequential, tmp_path, ("second", "apart"))  # the first was trained alone, without the picture's weights


def stop_at_a_checkpoint(number, folder):
    """Send a signal to a run of two steps side by side once the first has a checkpoint."""
    (folder / "toy.toml").write_text(RECIPE)
    moment = PLACE / "steps/first/checkpoint.safetensors"
    return forked.stop_at(moment, number, "run", "toy.toml", "--jobs", "2", folder=folder, before=FORKING)


@slow
def test_a_stopped_run_goes_on_and_ends_the_same_to_the_byte(sequential, tmp_path):
    stopped = stop_at_a_checkpoint(signal.SIGINT, tmp_path)
    assert stopped.returncode == 1 and "Traceback" not in stopped.stderr
    assert stopped.stderr.endswith("error: stopped; run the same command again to resume from the last checkpoint\n")
    assert ": after the current update, with a checkpoint\n" in stopped.stdout
    assert not list((tmp_path / PLACE).glob("steps/*/.lock"))
    assert_resumes(sequential, tmp_path)


@slow
def test_a_killed_run_leaves_checkpoints_and_goes_on(sequential, tmp_path):
    """Its children end by themselves, after an update."""
    killed = stop_at_a_checkpoint(signal.SIGKILL, tmp_path)
    assert killed.returncode == -signal.SIGKILL
    first = tmp_path / PLACE / "steps/first"
    while (first / ".lock").exists():
        time.sleep(0.01)
    assert (first / "checkpoint.safetensors").exists() and not (first / "weights.safetensors").exists()
    assert_resumes(sequential, tmp_path)


def assert_resumes(sequential, tmp_path):
    assert not (tmp_path / PLACE / "steps/second/weights.safetensors").exists()
    toys.ran(tmp_path)
    same(sequential, tmp_path)


@slow
def test_a_killed_child_is_one_line(tmp_path):
    (tmp_path / "toy.toml").write_text(RECIPE)
    dies = """
from mmgen.runs import child

def die(folder, recipe, settings, steps, send):
    next(iter(steps))
    os.kill(os.getpid(), 9)

child.train_steps = die
"""
    failed = forked.run(FORKING + dies + forked.MMGEN, "run", "toy.toml", "--jobs", "2", folder=tmp_path)
    assert failed.returncode == 1
    (message,) = [line for line in failed.stderr.splitlines() if line.startswith("error: ")]
    assert message.removeprefix("error: step 'first'").removeprefix("error: step 'apart'") == (
        ": its process ended (-9); run the same command again to resume from the last checkpoint"
    )


@pytest.mark.parametrize(
    ("requested", "cores", "processes", "gpus", "most"),
    [
        (None, 4, 1, 0, 3),  # the recipe's
        (None, 2, 1, 0, 2),  # as far as there are cores
        (None, 4, 2, 0, 1),
        (None, 4, 1, 2, 2),  # a step for each GPU
        (5, 4, 1, 1, 5),  # who asks is not doubted
    ],
)
def test_jobs_default_to_the_recipes(monkeypatch, requested, cores, processes, gpus, most):
    monkeypatch.setattr(jobs, "cores", lambda: cores)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    accelerator = SimpleNamespace(num_processes=processes, device=SimpleNamespace(type="cuda" if gpus else "cpu"))
    assert Jobs.of(requested, SimpleNamespace(jobs=3), (), accelerator).count == most


@pytest.mark.parametrize(("visible", "gpus"), [("", ["1", "0", "1"]), ("3,5", ["5", "3", "5"])])
def test_every_child_has_a_gpu_and_no_variables_of_torchrun(tmp_path, monkeypatch, visible, gpus):
    started = []
    recipe = toys.loaded(tmp_path, RECIPE)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(jobs.subprocess, "Popen", lambda command, **more: started.append(more["env"]))
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    for number in range(3):
        jobs.start_child(RunFolder(tmp_path), recipe, Settings(), number)
    assert [environment["CUDA_VISIBLE_DEVICES"] for environment in started] == gpus
    assert not any("RANK" in environment for environment in started)
