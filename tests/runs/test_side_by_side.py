"""Steps that train at the same time in separate processes: their results, and how they end."""

import json
import multiprocessing
import os
import signal
import time
from multiprocessing import forkserver
from pathlib import Path
from types import SimpleNamespace

import pytest
from kit import forked, toys
from kit.toys import PLACE, mmgen_here

from mmgen.errors import RunError
from mmgen.runs import side_by_side
from mmgen.runs.side_by_side import Jobs
from mmgen.runs.training_process import Order

slow = pytest.mark.slow  # starts processes
pytestmark = pytest.mark.usefixtures("no_page")

RECIPE = toys.three_steps(training={"epochs": 2, "checkpoint_every": 2})


@pytest.fixture(scope="module")
def sequential(tmp_path_factory) -> Path:
    """A finished run whose steps trained one after the other."""
    folder = tmp_path_factory.mktemp("sequential")
    (folder / "toy.toml").write_text(RECIPE)
    done = mmgen_here(folder, "run", "toy.toml")
    assert done.returncode == 0, done.stderr
    return folder


def same(first: Path, second: Path, steps=("first", "second", "apart")) -> None:
    for name in steps:
        ours, theirs = (
            {path.name: path for path in (folder / PLACE / "steps" / name).iterdir()} for folder in (first, second)
        )
        assert ours.keys() == theirs.keys()
        assert all(ours[file].read_bytes() == theirs[file].read_bytes() for file in ours), name
    assert (first / PLACE / "table.md").read_text() == (second / PLACE / "table.md").read_text()


@slow
def test_a_run_trains_as_many_steps_at_a_time_as_its_recipe_says_the_same_to_the_bit(
    sequential, tmp_path, monkeypatch, caplog
):
    trained = []  # (step, whether it began early)

    class Watched(side_by_side.Process):
        def train(self, step):
            trained.append((step, self.early))
            super().train(step)

    monkeypatch.setattr(side_by_side, "cores", lambda: 2)
    monkeypatch.setattr(side_by_side, "Process", Watched)
    (tmp_path / "toy.toml").write_text(f"jobs = 2\n{RECIPE}")
    done = mmgen_here(tmp_path, "run", "toy.toml")
    assert done.returncode == 0, done.stderr
    assert dict(trained) == {"first": True, "second": False, "apart": False}
    assert trained[0][0] == "first"  # captions can be read before there are features
    same(sequential, tmp_path)
    said = done.stdout + done.stderr
    assert "computing, up to 2 steps side by side, each with 1 thread on " in said
    for name in ("first", "second", "apart"):
        assert f"\n{name}: training" in said and (f"\n{name}: scoring" in said) == (name != "apart")
    assert caplog.text.count("built on the spot") == said.count("all files are in") == 1
    assert json.loads((tmp_path / PLACE / "times.json").read_text()).keys() == {"first", "second", "apart"}
    again = mmgen_here(tmp_path, "run", "toy.toml", "--set", "jobs=1")
    assert "nothing to do: all steps are done" in again.stdout


@slow
def test_a_step_that_fails_is_reported_in_one_line_and_stops_the_others(sequential, tmp_path):
    (tmp_path / "toy.toml").write_text(RECIPE)
    assert mmgen_here(tmp_path, "run", "toy.toml", "--step", "first").returncode == 0
    left = tmp_path / PLACE / "steps" / "apart"
    left.mkdir()
    (left / "checkpoint.safetensors").write_bytes(b"no checkpoint")
    failed = mmgen_here(tmp_path, "run", "toy.toml", "--jobs", "2")
    assert failed.returncode == 1 and "Traceback" not in failed.stderr
    (message,) = [line for line in failed.stderr.splitlines() if line.startswith("error: ")]
    assert "steps/apart/checkpoint.safetensors: damaged" in message
    (left / "checkpoint.safetensors").unlink()
    assert mmgen_here(tmp_path, "run", "toy.toml").returncode == 0
    same(sequential, tmp_path, ("second", "apart"))  # the first was learnt alone, without the picture's weights


# Processes are forked from the run's own: one that starts anew imports torch, which is seconds.
FORKING = """
import multiprocessing
multiprocessing.get_context = lambda *_, get=multiprocessing.get_context: get("fork")
"""


@slow
def test_a_stopped_run_goes_on_and_ends_the_same_to_the_bit(sequential, tmp_path):
    (tmp_path / "toy.toml").write_text(RECIPE)
    moment = PLACE / "steps/first/checkpoint.safetensors"
    arguments = ("run", "toy.toml", "--jobs", "2")
    stopped = forked.stop_at(moment, signal.SIGINT, *arguments, folder=tmp_path, before=FORKING)
    assert stopped.returncode == 1 and "Traceback" not in stopped.stderr
    assert stopped.stderr.endswith("error: stopped; run the same command again to resume from the last checkpoint\n")
    assert_resumes(sequential, tmp_path)


@pytest.mark.exhaustive
@slow
def test_the_processes_of_a_killed_run_end_soon(sequential, tmp_path):
    """Not forks of the run, which would hear of no kill."""
    for attempt in range(10):  # on a busy machine, the run may end before it is killed
        folder = tmp_path / str(attempt)
        folder.mkdir()
        (folder / "toy.toml").write_text(RECIPE)
        run = forked.start(forked.MMGEN, "run", "toy.toml", "--jobs", "2", folder=folder)
        while not list(folder.rglob("checkpoint.safetensors")) and not run.ended():
            time.sleep(0.005)
        os.kill(run.pid, signal.SIGKILL)
        killed = run.finish()
        if killed.returncode:
            break
    assert killed.returncode == -signal.SIGKILL
    assert_resumes(sequential, folder)


def assert_resumes(sequential, tmp_path):
    """Nothing works in the folder of the stopped run any more, and the same command finishes it."""
    while any(str(tmp_path) in path for path in working_folders()):
        time.sleep(0.01)
    assert not (tmp_path / PLACE / "steps/second/weights.safetensors").exists()
    done = mmgen_here(tmp_path, "run", "toy.toml")
    assert done.returncode == 0, done.stderr
    same(sequential, tmp_path)


def working_folders() -> list[str]:
    """The command lines of all processes; empty if the system does not provide them."""
    folders = []
    for path in Path("/proc").glob("[0-9]*/cwd"):
        try:
            folders.append(str(path.readlink()))
        except OSError:
            continue  # it has ended
    return folders


@slow
def test_several_processes_and_jobs_do_not_go_together(tmp_path):
    (tmp_path / "toy.toml").write_text(RECIPE)
    done = forked.run_together(2, forked.MMGEN, "run", "toy.toml", "--jobs", "2", folder=tmp_path)
    assert done.returncode == 1
    assert "error: --jobs 2: this run trains in several processes already; leave out --jobs" in done.stderr


@pytest.mark.parametrize(
    ("requested", "cores", "processes", "device", "only", "most"),
    [
        (None, 4, 1, "cpu", (), 3),  # the recipe's
        (None, 2, 1, "cpu", (), 2),  # as far as there are cores
        (None, 4, 2, "cpu", (), 1),
        (None, 4, 1, "cuda", (), 1),
        (None, 4, 1, "cpu", ("first",), 1),
        (5, 4, 1, "cpu", (), 5),  # who asks is not doubted
        (1, 4, 1, "cpu", (), 1),
        (1, 4, 1, "cuda", (), 1),
    ],
)
def test_jobs_default_to_the_recipes(monkeypatch, requested, cores, processes, device, only, most):
    monkeypatch.setattr(side_by_side, "cores", lambda: cores)
    accelerator = SimpleNamespace(num_processes=processes, device=SimpleNamespace(type=device))
    assert Jobs.of(requested, SimpleNamespace(jobs=3), only, accelerator) == Jobs(most, only)


def test_a_process_that_trained_a_step_trains_the_next(monkeypatch):
    class Learns:
        def __init__(self, order):
            self.early, self.steps, self.stopped = order.early, [], False

        def train(self, step):
            self.step = step
            self.steps.append(step)

        def stop(self):
            self.stopped = True

    monkeypatch.setattr(side_by_side, "Process", Learns)
    early, later = (Order("{}", Path(), (), 1, 2, early=early) for early in (True, False))
    running = side_by_side.Running()
    running.train("first", early)
    running.train("second", later)
    running.rest(running.training["first"], needed=True)  # its model lacks inputs
    running.rest(running.training["second"], needed=True)
    running.train("third", later)
    running.train("fourth", later)
    running.rest(running.training["third"], needed=False)
    assert [(process.steps, process.stopped) for process in running.started] == [
        (["first"], True),
        (["second", "third"], True),
        (["fourth"], False),
    ]
    assert running.training.keys() == {"fourth"} and not running.resting


@slow
def test_a_fork_server_that_is_killed_is_a_line_with_the_step(tmp_path, monkeypatch):
    """It is killed after it was asked for a process, and before it has answered."""
    multiprocessing.get_context("forkserver").set_forkserver_preload([])
    forkserver.ensure_running()
    server, read = forkserver._forkserver._forkserver_pid, forkserver.read_signed
    os.kill(server, signal.SIGSTOP)

    def killed(answers):
        os.kill(server, signal.SIGKILL)
        return read(answers)

    monkeypatch.setattr(forkserver, "read_signed", killed)
    with pytest.raises(RunError) as error:
        side_by_side.Running().train("both", Order("{}", tmp_path, (), 1, 2))
    assert str(error.value) == (
        "step 'both': its process could not be started: the process that starts the steps' processes has ended; it may "
        "have been killed for lack of memory; run the same command again to resume, or use --jobs 1"
    )
