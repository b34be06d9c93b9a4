"""Side by side: steps that do not start from one another are learnt at the same time, each in a process of its own.

The run's own process learns nothing then. It starts the others, repeats what they say, and scores each step that has
been learnt and written for. A process builds the same model from the same recipe and seed, and what a step learns
depends on its start alone. So the weights are those of a run whose steps follow one another, to the bit.

The processes are forked from one that has imported what they need and has computed nothing (`forkserver`). One that has
learnt a step learns the next: data and model are built once a process.

A step that reads nothing whose features are still to be made begins before they are (`begin`): the run's process makes
them meanwhile. Its process has a model without those inputs, and ends with the step.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing import forkserver
from multiprocessing.connection import wait

import torch
from accelerate import Accelerator
from torch import Tensor

from ..errors import MmgenError, RunError
from ..files import write_json
from ..model import Model
from ..progress import Progress
from ..recipe.tables import Recipe
from ..storage.model_files import INPUTS
from ..storage.run_folder import RunFolder
from ..storage.step_weights import load_step
from ..storage.weights import save_weights
from ..training.threads import cores
from .learning_process import LEARNT, Order, learn
from .prepare import unmade
from .step import WEIGHTS

WRITES = "mmgen.search"  # a name, since it takes seconds to import


@dataclass(frozen=True)
class Jobs:
    """How many processes learn at a time. `only`: the step that the run was asked for, if it was for one."""

    most: int
    only: str | None

    @classmethod
    def of(cls, asked: int | None, recipe: Recipe, only: str | None, accelerator: Accelerator) -> Jobs:
        """Those that were asked for, else the recipe's, as far as there are cores. Raises RunError where more than one
        is asked for and a run has several processes already, or a GPU; a recipe's do not count there."""
        apart = accelerator.num_processes == 1 and accelerator.device.type == "cpu"
        if asked is None:
            return cls(min(recipe.jobs, cores()) if apart and only is None else 1, only)
        if asked > 1 and not apart:
            where = "in several processes already" if accelerator.num_processes > 1 else "on a GPU"
            raise RunError(f"--jobs {asked}: this run learns {where}; leave --jobs out")
        return cls(asked, only)


class Process:
    """A process that learns steps, one after another, and writes for each.

    step   the one that it learns, or has learnt last
    began  when it was told to learn it
    ear    hears what the process says, and the end of it
    """

    def __init__(self, order: Order) -> None:
        self.early, self.step, self.began = order.early, "", 0.0
        self.error: MmgenError | OSError | None = None
        self.ear, mouth = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("forkserver").Process(target=learn, args=(order, mouth))
        self._process.start()
        mouth.close()

    def learn(self, step: str) -> None:
        """Tells it what to learn next."""
        self.step, self.began = step, time.monotonic()
        with contextlib.suppress(OSError):  # it has ended, which `hear` tells
            self.ear.send(step)

    def hear(self, progress: Progress) -> bool:
        """Repeats the next thing that it says; False when it has learnt its step. Raises RunError where it failed."""
        try:
            said = self.ear.recv()
        except (EOFError, OSError):
            self._process.join()
            raise self._told(self._process.exitcode or 0) from None
        if isinstance(said, MmgenError | OSError):
            self.error = said
        elif said is not LEARNT:
            progress.say(said)
        return said is not LEARNT

    def _told(self, status: int) -> MmgenError:
        if isinstance(self.error, MmgenError):
            return self.error
        if self.error:
            return RunError(f"step '{self.step}': {self.error}")
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        return RunError(
            f"step '{self.step}': its process ended with {how}; the same command goes on from the last checkpoint"
        )

    def stop(self) -> None:
        """Asks it to end. It finishes the update that it computes, and keeps a checkpoint."""
        self._process.terminate()

    def join(self) -> None:
        self._process.join()


@dataclass
class Running:
    """The processes of a run: those that learn, by their steps, and those that have learnt and can go on."""

    learning: dict[str, Process] = field(default_factory=dict)
    resting: list[Process] = field(default_factory=list)
    started: list[Process] = field(default_factory=list)

    def learn(self, step: str, order: Order) -> None:
        """By a process that rests, else by a new one."""
        if self.resting and not order.early:
            process = self.resting.pop()
        else:
            self.started.append(process := Process(order))
        process.learn(step)
        self.learning[step] = process

    def rest(self, process: Process, needed: bool) -> None:
        """What has learnt its step goes on later where it is `needed`, and else ends."""
        del self.learning[process.step]
        if needed and not process.early:
            self.resting.append(process)
        else:
            process.stop()


@contextlib.contextmanager
def processes() -> Iterator[Running]:
    """Room for processes. When the block is left, they are stopped."""
    running = Running()
    try:
        yield running
    finally:
        for process in running.started:
            process.stop()
        for process in running.started:
            process.join()


def preload(recipe: Recipe, folder: RunFolder, jobs: Jobs) -> None:
    """Starts the process that others are forked from, where there will be others. It imports what they learn and write
    with, while the run's process looks at the data."""
    if jobs.most > 1 and not all(folder.finished(name, WEIGHTS) for name in recipe.steps):
        multiprocessing.get_context("forkserver").set_forkserver_preload([learn.__module__, WRITES])
        forkserver.ensure_running()


def begin(
    todo: Sequence[str], recipe: Recipe, folder: RunFolder, jobs: Jobs, threads: int | str | None, running: Running
) -> None:
    """Starts those of `todo` that need not wait for features; one job is left to make these. Steps that start from
    published weights wait: what they take is looked at first."""
    wanted = unmade(recipe, folder) if jobs.most > 1 else set()
    free = [
        name
        for name in todo
        if wanted
        and recipe.steps[name].before is None
        and recipe.steps[name].weights is None
        and not folder.finished(name, WEIGHTS)
        and wanted.isdisjoint(recipe.steps[name].inputs)
    ]
    for name in free[: jobs.most - 1]:
        if not (kept := folder.path / INPUTS).exists():
            write_json(kept, {})  # nothing has learnt from features yet
        running.learn(name, Order(recipe.model_dump_json(), folder.path, name, threads, jobs.most, early=True))


def complete(name: str, model: Model, recipe: Recipe, folder: RunFolder, initial: Mapping[str, Tensor]) -> None:
    """The weights of a step that began early, with those of the inputs that were left out: they are as built."""
    load_step(model, recipe, folder, name, initial)
    save_weights(model, folder.step(name) / WEIGHTS, step=name)


def learnt(
    todo: Sequence[str],
    recipe: Recipe,
    folder: RunFolder,
    jobs: Jobs,
    running: Running,
    progress: Progress,
    early: Callable[[str], None],
) -> Iterator[str]:
    """`todo`, each step once it has been learnt and written for; with one job as it is, with nothing done before.
    `running`: see `processes`. `early` is called with each step that began before the others, when it has been learnt.
    Raises RunError where one fails."""
    if jobs.most == 1:
        yield from todo
        return
    done = {name for name in recipe.steps if folder.finished(name, WEIGHTS)}
    ended = [name for name in todo if name in done]  # nothing is left to learn
    learning = running.learning
    waiting = [name for name in todo if name not in {*done, *learning}]
    order = Order(recipe.model_dump_json(), folder.path, jobs.only, torch.get_num_threads(), jobs.most)
    while ended or waiting or learning:
        free = [name for name in waiting if recipe.steps[name].before in {None, *done}]
        for name in free[: jobs.most - len(learning)]:
            waiting.remove(name)
            running.learn(name, order)
        if ended:
            yield ended.pop(0)
            continue
        ready = wait([process.ear for process in learning.values()])
        for process in [process for process in learning.values() if process.ear in ready]:
            if not process.hear(progress):
                running.rest(process, needed=bool(waiting))
                if process.early:
                    early(process.step)
                folder.spent(process.step, time.monotonic() - process.began)
                done.add(process.step)
                ended.append(process.step)
