"""The surfaces of kills that are runs: a run with everything in it, and steps that train side by side.

Runs are forked from this process, which has imported everything, so a kill costs the time of the work alone. Weights,
logs, texts, scores, tables and features are compared byte by byte; the page and what says when and where a run was
made must be there, and complete."""

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
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
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
    { type = "scenes", train_size = 20, val_size = 4, test_size = 8 },
    { type = "scene_stories", train_size = 6, val_size = 2, share = 0.5, objectives = ["words"] },
]
[steps.both]
inputs = ["image", "caption"]
train = ["image", "backbone"]
start = "caption"
[data]
type = "scenes"
train_size = 20
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
)
PLACE = Path("runs/kills/default/seed-0")
STEPS = ("caption", "both")
SIDE_BY_SIDE_STEPS = ("caption", "both", "apart")
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
SIDE_BY_SIDE_PHASES = (
    "one step trains",
    "two steps train",
    "beginning a step",
    "writing",
    "scoring",
    "drawing the report",
)
VARYING = ("environment.json", "times.json", "report.html")  # they say when and where
IGNORED = (".lock",)
KILLS = 4  # of a run
CHILD_KILLED = "its process ended with signal 9; run the same command again to resume from the last checkpoint"


def run_here() -> None:
    """`mmgen run kills.toml`, in this process."""
    main(["run", "kills.toml"], prog_name="mmgen")


def phase(folder: Path) -> str:
    """The current phase of a run of `RECIPE`, from the files in its folder."""
    place = folder / PLACE
    stores = list(place.parent.glob("features/*.h5"))
    if any(place.parent.glob("features/.*.assembling")):
        return "putting features together"
    if not stores:
        return "extracting" if any(place.parent.glob("features/*.partial")) else "starting"
    if any(place.glob("steps/*/.*.safetensors.*.partial")):
        return "writing a checkpoint"
    for step in STEPS:
        files = _files(place, step)
        if "weights.safetensors" not in files:
            return "learning" if files else "beginning a step"
        if what := _unevaluated(files):
            return what
    return "drawing the report"


def phase_side_by_side(folder: Path) -> str:
    """The current phase of a run of `SIDE_BY_SIDE`, from the files in its folder."""
    files = [_files(folder / PLACE, step) for step in SIDE_BY_SIDE_STEPS]
    if not any(files):
        return "starting"
    if training := sum(bool(names) and "weights.safetensors" not in names for names in files):
        return "one step trains" if training == 1 else "two steps train"
    for names in files:
        if names and (what := _unevaluated(names)):
            return what
    return "drawing the report" if all(files) else "beginning a step"


def _files(place: Path, step: str) -> set[str]:
    return {file.name for file in (place / "steps" / step).glob("*")}


def _unevaluated(files: Collection[str]) -> str:
    """What a trained step still lacks."""
    return "writing" if "generations.jsonl" not in files else "scoring" if "scores.json" not in files else ""


class Runs:
    """The surface of work that runs a recipe.

    kill    (process, draw, seconds of the work) kills it, and returns whether it did
    phase   the phase of the run in a folder
    server  the fork server of the processes that a run starts, if it starts any
    """

    def __init__(
        self,
        name: str,
        recipe: str,
        work: Callable[[], object],
        kill: Kill,
        folder: Path,
        phase: Callable[[Path], str] = phase,
        server: ForkServer | None = None,
    ) -> None:
        self.name, self.recipe, self.work, self.kill, self.phase, self.server = name, recipe, work, kill, phase, server
        self.undisturbed, self.place = folder / "undisturbed", folder / "case"
        ending = forks.run(work, self._begin(self.undisturbed))
        if ending.status or "Traceback" in ending.errors:
            raise SystemExit(f"error: {name}: the undisturbed run failed: {ending.output}")
        self.seconds, self.usual = ending.seconds, ending.errors

    def case(self, draw: random.Random) -> Outcome:
        """Kill one run again and again, then let it end."""
        self._begin(self.place)
        phases, wrong = Counter[str](), list[str]()
        for _ in range(KILLS):
            process = forks.Fork(self.work, self.place)
            killed = self.kill(process, draw, self.seconds)
            hit = self.phase(self.place)
            ending = process.wait()
            wrong += [f"{len(rest)} processes are left over"] if (rest := forks.survivors(self.place)) else []
            complaints = self._complaints(process, CHILD_KILLED) + folders.torn(self.place)
            wrong += [f"killed while {hit}: {text}" for text in complaints]
            if not killed and not phases:  # the whole work, while the machine was busy with less
                self.seconds = min(self.seconds, ending.seconds)
            phases.update([hit] if killed else [])
            if not killed or not ending.status:
                break
            if not ending.killed and CHILD_KILLED not in ending.output:
                wrong.append(f"a killed run ends with {ending.status}: {ending.output[-300:].strip()}")
        process = forks.Fork(self.work, self.place)
        ending = process.wait()
        wrong += self._complaints(process, "")
        if ending.status:
            wrong.append(f"the run does not resume: {ending.output[-300:].strip()}")
        else:
            wrong += folders.differences(self.undisturbed, self.place, IGNORED, VARYING) + folders.torn(self.place)
        wrong += [f"{name} is left over among temporary files" for name in folders.files(process.temporary)]
        return Outcome(self.name, phases.total(), tuple(wrong), phases=phases)

    def _complaints(self, process: forks.Fork, allowed: str) -> list[str]:
        """What is wrong in all that the run and the processes it started have printed on stderr."""
        return process.complaints(self.usual, allowed) + (self.server.complaints() if self.server else [])

    def _begin(self, folder: Path) -> Path:
        for path in (folder, Path(f"{folder}.tmp")):
            shutil.rmtree(path, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "kills.toml").write_text(self.recipe)
        return folder


Kill = Callable[[forks.Fork, random.Random, float], bool]


def kill_whole(process: forks.Fork, draw: random.Random, seconds: float) -> bool:
    """Kill a run."""
    _wait(process, draw, seconds, PHASES, phase)
    return _kill(process, process.pid)


def kill_parent(process: forks.Fork, draw: random.Random, seconds: float) -> bool:
    """Kill a run whose steps train side by side."""
    _wait(process, draw, seconds, SIDE_BY_SIDE_PHASES, phase_side_by_side)
    return _kill(process, process.pid)


def kill_child(process: forks.Fork, draw: random.Random, seconds: float) -> bool:
    """Kill a process that trains a step for the run, after the first of them has begun."""
    while not process.ended() and not children(process):
        time.sleep(0.002)
    _wait(process, draw, seconds / 2, SIDE_BY_SIDE_PHASES[:3], phase_side_by_side)
    alive = children(process)
    return bool(alive) and _kill(process, draw.choice(alive))


def children(process: forks.Fork) -> list[int]:
    """The processes that train steps for a run."""
    return [pid for pid in forks.processes_in(process.folder) if pid != process.pid]


def _wait(
    process: forks.Fork, draw: random.Random, seconds: float, phases: Sequence[str], current: Callable[[Path], str]
) -> None:
    """Wait until a random moment of these seconds, or until shortly after the beginning of a phase, since short phases
    would hardly be hit."""
    aim = draw.choice([None, *phases])
    if aim:
        while not process.ended() and current(process.folder) != aim:
            time.sleep(0.0002)
    _sleep(process, 10 ** draw.uniform(-4, -1) if aim else draw.uniform(0, seconds))


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


class ForkServer:
    """The process from which all runs' processes are forked, with what they need imported. What they print goes to a
    file, their temporary files into a folder."""

    def __init__(self, folder: Path) -> None:
        self.printed, self.temporary = folder / "server.err", folder / "server.tmp"
        self.temporary.mkdir()
        self.printed.touch()
        server = forkserver._forkserver  # type: ignore[attr-defined]
        server._stop()  # one that prints elsewhere
        multiprocessing.get_context("forkserver").set_forkserver_preload(import_all())
        with self._streams():
            forkserver.ensure_running()

    @contextmanager
    def _streams(self) -> Iterator[None]:
        """In the block, programs that are started print to the file and have the folder for temporary files."""
        file = os.open(self.printed, os.O_WRONLY | os.O_APPEND)
        before = os.dup(1), os.dup(2), os.environ.get("TMPDIR")
        for descriptor in (1, 2):
            os.dup2(file, descriptor)
        os.environ["TMPDIR"] = str(self.temporary)
        try:
            yield
        finally:
            for descriptor in (1, 2):
                os.dup2(before[descriptor - 1], descriptor)
                os.close(before[descriptor - 1])
            os.close(file)
            del os.environ["TMPDIR"]
            os.environ |= {"TMPDIR": before[2]} if before[2] is not None else {}

    def complaints(self) -> list[str]:
        """What is wrong since the last call: any text, since the run reports errors; files left over."""
        text = self.printed.read_text(errors="replace").strip()
        os.truncate(self.printed, 0)
        wrong = [f"a process of the run prints: {text[-600:]}"] if text else []
        return wrong + [f"{name} is left over among temporary files" for name in folders.files(self.temporary)]


@functools.cache
def fork_server(folder: Path) -> ForkServer:
    return ForkServer(folder)


def run_side_by_side(page: bool) -> None:
    """The run, in a fork. Its processes come from the fork server of the process that it was forked from: to start
    another server would take seconds. `page`: whether the page is drawn."""

    def running() -> None:
        pass

    server = forkserver._forkserver  # type: ignore[attr-defined]
    server.ensure_running = forkserver.ensure_running = running
    if not page:
        mmgen.report.try_page = lambda *_: None
    run_here()


def side_by_side_runs(name: str, kill: Kill, page: bool, folder: Path) -> Runs:
    """The surface of runs whose steps train side by side. `page`: with metrics and the page."""
    recipe = SIDE_BY_SIDE if page else SIDE_BY_SIDE.partition("[metrics")[0]
    work = functools.partial(run_side_by_side, page)
    return Runs(name, recipe, work, kill, folder, phase_side_by_side, fork_server(folder.parent))


def whole_runs(name: str, folder: Path) -> Runs:
    """The surface of runs with everything in them."""
    import_all()
    return Runs(name, RECIPE, run_here, kill_whole, folder)


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
