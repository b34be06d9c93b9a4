"""The surfaces of kills that are runs: a run with everything in it, and steps that train side by side.

Runs are forked from this process, which has imported everything, so a kill costs the time of the work alone. Weights,
logs, texts, scores, tables and features are compared byte by byte; what says when and where a run was made is left
out, and so is the page."""

from __future__ import annotations

import functools
import importlib
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import forkserver
from pathlib import Path

from kit import toys

import mmgen.report
from mmgen.cli import main

from . import folders, forks
from .piece import Outcome

RECIPE = """\
name = "kills"
[backbone]
type = "bert"
num_hidden_layers = 2
hidden_size = 64
num_attention_heads = 4
[inputs.image]
type = "regions"
[inputs.image.extractor]
type = "roi"
model = "test_resnet"
image_size = 64
batch_size = 2
[inputs.caption]
type = "text"
[generator]
type = "masked"
max_tokens = 12
[training]
batch_size = 16
micro_batch_size = 6
epochs = 2
learning_rate = 1e-3
checkpoint_every = 1
keep = "best"
num_workers = 1
[objectives.words]
type = "masked_words"
[steps.caption]
inputs = ["caption"]
train = ["backbone"]
objectives = ["generator", "words"]
data = [
    { type = "scenes", train_size = 40, val_size = 4, test_size = 8 },
    { type = "scene_stories", train_size = 12, val_size = 2, share = 0.5, objectives = ["words"] },
]
[steps.both]
inputs = ["image", "caption"]
train = ["image", "backbone"]
start = "caption"
[data]
type = "scenes"
train_size = 40
val_size = 4
test_size = 8
[decoding]
num_beams = 2
[metrics.meaning]
type = "discovery"
"""
SIDE_BY_SIDE = toys.recipe(
    name="kills",
    jobs=2,
    training={"checkpoint_every": 2, "num_workers": 0},
    steps={
        "caption": {"inputs": ["caption"], "train": ["backbone"]},
        "both": {"inputs": ["caption"], "train": ["backbone"], "start": "caption"},
        "apart": {"inputs": ["caption"], "train": ["backbone"]},
    },
    data={"train_size": 16, "val_size": 2, "test_size": 4},
    metrics=None,
)
PLACE = Path("runs/kills/default/seed-0")
STEPS = ("caption", "both")
PHASES = (
    "extracting",
    "putting features together",
    "learning",
    "writing a checkpoint",
    "beginning a step",
    "writing",
    "scoring",
    "drawing the report",
)
IGNORED = ("environment.json", "times.json", ".lock", "report.html")
KILLS = 4  # of a run
CHILD_KILLED = "its process ended with signal 9; run the same command again to resume from the last checkpoint"


def run_here() -> None:
    """`mmgen run kills.toml`, in this process."""
    main(["run", "kills.toml"], prog_name="mmgen")


def phase(folder: Path) -> str:
    """The current phase of a run, from the files in its folder."""
    place = folder / PLACE
    stores = list(place.parent.glob("features/*.h5"))
    if any(place.parent.glob("features/.*.assembling")):
        return "putting features together"
    if not stores:
        return "extracting" if any(place.parent.glob("features/*.partial")) else "starting"
    if any(place.glob("steps/*/.*.safetensors.*.partial")):
        return "writing a checkpoint"
    for step in STEPS:
        files = {file.name for file in (place / "steps" / step).glob("*")}
        if "weights.safetensors" not in files:
            return "learning" if files else "beginning a step"
        if "generations.jsonl" not in files:
            return "writing"
        if "scores.json" not in files:
            return "scoring"
    return "drawing the report"


class Runs:
    """The surface of work that runs a recipe. `kill`: (process, draw, seconds of the work) kills it, and returns what
    went wrong."""

    def __init__(self, name: str, recipe: str, work: Callable[[], object], kill: Kill, folder: Path) -> None:
        self.name, self.recipe, self.work, self.kill = name, recipe, work, kill
        self.undisturbed, self.place = folder / "undisturbed", folder / "case"
        ending = forks.run(work, self._begin(self.undisturbed))
        if ending.status:
            raise SystemExit(f"error: {name}: the undisturbed run failed: {ending.output}")
        self.seconds = ending.seconds

    def case(self, draw: random.Random) -> Outcome:
        """Kill one run again and again, then let it end."""
        self._begin(self.place)
        kills, wrong = 0, list[str]()
        for _ in range(KILLS):
            process = forks.Fork(self.work, self.place)
            killed, message = self.kill(process, draw, self.seconds)
            ending = process.wait()
            wrong += [message] if message else []
            wrong += [f"{len(rest)} processes are left over"] if (rest := forks.survivors(self.place)) else []
            if not killed and not kills:  # the whole work, while the machine was busy with less
                self.seconds = min(self.seconds, ending.seconds)
            kills += killed
            if not killed or not ending.status:
                break
            if not ending.killed and CHILD_KILLED not in ending.output:
                wrong.append(f"a killed run ends with {ending.status}: {ending.output[-300:].strip()}")
        ending = forks.run(self.work, self.place)
        if ending.status:
            wrong.append(f"the run does not resume: {ending.output[-300:].strip()}")
        else:
            wrong += folders.differences(self.undisturbed, self.place, IGNORED)
        return Outcome(self.name, kills, tuple(wrong))

    def _begin(self, folder: Path) -> Path:
        for path in (folder, Path(f"{folder}.tmp")):
            shutil.rmtree(path, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "kills.toml").write_text(self.recipe)
        return folder


Kill = Callable[[forks.Fork, random.Random, float], tuple[bool, str]]


def kill_at_random(process: forks.Fork, draw: random.Random, seconds: float) -> tuple[bool, str]:
    """Kill a run at a random moment of its time, or shortly after the beginning of a phase, since short phases would
    hardly be hit."""
    aim = draw.choice([None, *PHASES])
    if aim:
        while not process.ended() and phase(process.folder) != aim:
            time.sleep(0.0002)
    _sleep(process, 10 ** draw.uniform(-4, -1) if aim else draw.uniform(0, seconds))
    return _kill(process, process.pid), ""


def kill_child(process: forks.Fork, draw: random.Random, seconds: float) -> tuple[bool, str]:
    """Kill a process that trains a step for the run, some time after the first of them has begun."""
    while not process.ended() and not children(process):
        time.sleep(0.002)
    _sleep(process, draw.uniform(0, seconds / 2))
    alive = children(process)
    return bool(alive) and _kill(process, draw.choice(alive)), ""


def children(process: forks.Fork) -> list[int]:
    """The processes that train steps for a run."""
    return [pid for pid in forks.processes_in(process.folder) if pid != process.pid]


def kill_parent(process: forks.Fork, draw: random.Random, seconds: float) -> tuple[bool, str]:
    _sleep(process, draw.uniform(0, seconds))
    return _kill(process, process.pid), ""


def _sleep(process: forks.Fork, seconds: float) -> None:
    until = time.monotonic() + seconds
    while not process.ended() and time.monotonic() < until:
        time.sleep(0.0002)


def _kill(process: forks.Fork, pid: int) -> bool:
    """Kill a process of a run; False if the run has ended before."""
    if process.ended():
        return False
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def run_side_by_side() -> None:
    """The run, in a fork. Its processes come from the fork server of the process that it was forked from: to start
    another server would take seconds."""

    def running() -> None:
        pass

    server = forkserver._forkserver  # type: ignore[attr-defined]
    server.ensure_running = forkserver.ensure_running = running
    mmgen.report.try_page = lambda *_: None
    run_here()


def side_by_side_runs(name: str, kill: Kill, folder: Path) -> Runs:
    """The surface of runs whose steps train side by side. All have one fork server, with what their processes need."""
    multiprocessing.get_context("forkserver").set_forkserver_preload(import_all())
    forkserver.ensure_running()
    return Runs(name, SIDE_BY_SIDE, run_side_by_side, kill, folder)


def whole_runs(name: str, folder: Path) -> Runs:
    """The surface of runs with everything in them."""
    import_all()
    return Runs(name, RECIPE, run_here, kill_at_random, folder)


@functools.cache
def import_all() -> list[str]:
    """Import what a run imports, so that no fork has to; returns the names of the modules. A fork finds them out."""
    with tempfile.TemporaryDirectory(prefix="mmgen-trials-") as folder:
        return _import_all(Path(folder, "run"))


def _import_all(folder: Path) -> list[str]:
    names = Path(f"{folder}.modules")

    def listing() -> None:
        with suppress(SystemExit):
            run_here()
        names.write_text("\n".join(name for name in sys.modules if not name.startswith("__m")))

    folder.mkdir()
    (folder / "kills.toml").write_text(RECIPE)
    if (ending := forks.run(listing, folder)).status:
        raise SystemExit(f"error: a run failed: {ending.output}")
    imported = []
    for name in names.read_text().split():
        with suppress(Exception):  # some are created by others, and cannot be imported by name
            importlib.import_module(name)
            imported.append(name)
    return imported
