"""Train several steps at the same time, each in a separate process: start, wait, stop; steps that can start early.

The run's process then trains no step. It starts the other processes, prints their progress, and scores each finished
step. Every process builds the same model from the same recipe and seed, and the weights of a step depend only on its
start. So the weights are equal to those of a sequential run: to the bit on CPUs, up to rounding on a GPU.

The processes are forked from a process that has imported the needed modules and has computed nothing (`forkserver`). A
process that has trained a step trains another: it builds data and model once.

A step that does not need the features to be extracted starts early (`begin_early`), while the run's process extracts
them. Its process has a model without those inputs, and ends with the step.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from multiprocessing import forkserver
from multiprocessing.connection import wait
from typing import Protocol

import torch
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
from ..training.callbacks import Event, Events
from ..training.distributed import Processes
from ..training.threads import cores
from .prepare import inputs_without_features
from .step import WEIGHTS
from .training_process import TRAINED, Order, train_steps

SEARCH_MODULE = "mmgen.search"  # a name, because the import takes seconds


@dataclass(frozen=True)
class Ended:
    """A step that another process has trained. `early`: before the features were extracted."""

    step: str
    early: bool
    seconds: float


class Workers(Protocol):
    """The processes that train the steps of a run: on this machine (`Running`), or a plugin's. `training`: the steps
    that are training now; `events` receives those of their callbacks."""

    events: Events

    @property
    def training(self) -> Collection[str]: ...

    def train(self, step: str, order: Order) -> None:
        """Start training of a step, as `training_process.train_ordered` does it."""

    def wait(self, progress: Progress, needed: bool) -> list[Ended]:
        """Wait for a while, print what the processes say, and return the steps that have ended. `needed`: whether more
        steps are waiting. Raises RunError if a step failed."""


@dataclass(frozen=True)
class Elsewhere:
    """Trains the steps of a run with the workers that `open` opens, up to `count` at a time."""

    count: int
    open: Callable[[], AbstractContextManager[Workers]]


@dataclass(frozen=True)
class Jobs:
    """The number of processes that train at the same time. `only`: the steps of the run, or () for all."""

    count: int
    only: tuple[str, ...]

    @classmethod
    def of(cls, requested: int | None, recipe: Recipe, only: tuple[str, ...], accelerator: Processes) -> Jobs:
        """The requested number, or else the recipe's, limited by the number of cores. With several processes already,
        or on a GPU, the recipe's number is ignored, and a requested number above 1 raises RunError."""
        one_cpu_process = accelerator.num_processes == 1 and accelerator.device.type == "cpu"
        if requested is None:
            return cls(min(recipe.jobs, cores()) if one_cpu_process and not only else 1, only)
        if requested > 1 and not one_cpu_process:
            where = "in several processes already" if accelerator.num_processes > 1 else "on a GPU"
            raise RunError(f"--jobs {requested}: this run trains {where}; leave out --jobs")
        return cls(requested, only)


class Process:
    """A process that trains steps in turn, and writes their texts or predictions.

    step        the current or last step
    began       start time of this step
    connection  receives the lines and errors of the process, and its end
    """

    def __init__(self, order: Order) -> None:
        self.early, self.step, self.began = order.early, "", 0.0
        self.error: MmgenError | OSError | None = None
        self.connection, remote_end = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("forkserver").Process(target=train_steps, args=(order, remote_end))
        self._process.start()
        remote_end.close()

    def train(self, step: str) -> None:
        """Start training of a step in the process."""
        self.step, self.began = step, time.monotonic()
        with contextlib.suppress(OSError):  # the process has ended; `receive` raises
            self.connection.send(step)

    def receive(self, progress: Progress, events: Events) -> bool:
        """Print the next message of the process, or hand its event on; False when its step is trained. Raises RunError
        if it failed."""
        try:
            message = self.connection.recv()
        except (EOFError, OSError):
            self._process.join()
            raise self._process_error(self._process.exitcode or 0) from None
        if isinstance(message, MmgenError | OSError):
            self.error = message
        elif isinstance(message, Event):
            events.send(message.method, *message.arguments)
        elif message is not TRAINED:
            progress.say(message)
        return message is not TRAINED

    def _process_error(self, status: int) -> MmgenError:
        if isinstance(self.error, MmgenError):
            return self.error
        if self.error:
            return RunError(f"step '{self.step}': {self.error}")
        ending = f"signal {-status}" if status < 0 else f"exit status {status}"
        return RunError(
            f"step '{self.step}': its process ended with {ending}; run the same command again to resume from the last "
            "checkpoint"
        )

    def stop(self) -> None:
        """Ask the process to end. It finishes the current update and writes a checkpoint."""
        self._process.terminate()

    def join(self) -> None:
        self._process.join()


@dataclass
class Running:
    """The processes of a run: `training` by step, and `resting` ones that can train another step. `events` receives
    theirs."""

    training: dict[str, Process] = field(default_factory=dict)
    resting: list[Process] = field(default_factory=list)
    started: list[Process] = field(default_factory=list)
    events: Events = field(default_factory=Events)

    def train(self, step: str, order: Order) -> None:
        """Train a step in a resting process, or else in a new one."""
        if self.resting and not order.early:
            process = self.resting.pop()
        else:
            self.started.append(process := _start_process(step, order))
        process.train(step)
        self.training[step] = process

    def wait(self, progress: Progress, needed: bool) -> list[Ended]:
        ready, ended = wait([process.connection for process in self.training.values()]), []
        for process in [process for process in self.training.values() if process.connection in ready]:
            if not process.receive(progress, self.events):
                self.rest(process, needed)
                ended.append(Ended(process.step, process.early, time.monotonic() - process.began))
        return ended

    def rest(self, process: Process, needed: bool) -> None:
        """Keep a process that has trained its step if it is `needed` later, or else stop it."""
        del self.training[process.step]
        if needed and not process.early:
            self.resting.append(process)
        else:
            process.stop()


def _start_process(step: str, order: Order) -> Process:
    """A process for a step. Raises RunError if the fork server, which starts processes, has been killed."""
    try:
        return Process(order)
    except (EOFError, OSError) as error:
        reason = f" ({error.strerror})" if isinstance(error, OSError) and error.strerror else ""
        raise RunError(
            f"step '{step}': its process could not be started{reason}: the process that starts the steps' processes "
            "has ended; it may have been killed for lack of memory; run the same command again to resume, or use "
            "--jobs 1"
        ) from None


@contextlib.contextmanager
def processes() -> Iterator[Running]:
    """The processes of a run. They are stopped at the end of the block."""
    running = Running()
    try:
        yield running
    finally:
        for process in running.started:
            process.stop()
        for process in running.started:
            process.join()


def preload(recipe: Recipe, folder: RunFolder, jobs: Jobs) -> None:
    """Start the fork server, if the run will fork processes. It imports their modules while the run's process checks
    the data."""
    if jobs.count > 1 and not all(folder.finished(name, WEIGHTS) for name in recipe.steps):
        multiprocessing.get_context("forkserver").set_forkserver_preload([train_steps.__module__, SEARCH_MODULE])
        forkserver.ensure_running()


def begin_early(
    todo: Sequence[str], recipe: Recipe, folder: RunFolder, jobs: Jobs, threads: int | str | None, running: Workers
) -> None:
    """Start the steps of `todo` that need no features to be extracted; one job is left for the extraction. Steps that
    start from published weights wait, because these weights are checked first."""
    unfinished = inputs_without_features(recipe, folder) if jobs.count > 1 else set()
    startable = [
        name
        for name in todo
        if unfinished
        and recipe.steps[name].before is None
        and recipe.steps[name].weights is None
        and not folder.finished(name, WEIGHTS)
        and unfinished.isdisjoint(recipe.steps[name].inputs)
    ]
    for name in startable[: jobs.count - 1]:
        if not (inputs_file := folder.path / INPUTS).exists():
            write_json(inputs_file, {})  # no step has read features yet
        running.train(name, Order(recipe.model_dump_json(), folder.path, (name,), threads, jobs.count, early=True))


def complete_weights(name: str, model: Model, recipe: Recipe, folder: RunFolder, initial: Mapping[str, Tensor]) -> None:
    """Add the initial weights of left-out inputs to the weights of a step that started early."""
    load_step(model, recipe, folder, name, initial)
    save_weights(model, folder.step(name) / WEIGHTS, step=name)


def trained_steps(
    todo: Sequence[str],
    recipe: Recipe,
    folder: RunFolder,
    jobs: Jobs,
    running: Workers,
    progress: Progress,
    early: Callable[[str], None],
) -> Iterator[str]:
    """Train the steps of `todo` in parallel and yield each trained step; with one job, yield `todo` untrained.

    `running`: see `processes`. `early` is called with each trained step that started early. Raises RunError if a step
    fails."""
    if jobs.count == 1:
        yield from todo
        return
    done = {name for name in recipe.steps if folder.finished(name, WEIGHTS)}
    ended = [name for name in todo if name in done]  # already trained
    waiting = [name for name in todo if name not in {*done, *running.training}]
    order = Order(recipe.model_dump_json(), folder.path, jobs.only, torch.get_num_threads(), jobs.count)
    while ended or waiting or running.training:
        startable = [name for name in waiting if recipe.steps[name].before in {None, *done}]
        for name in startable[: jobs.count - len(running.training)]:
            waiting.remove(name)
            running.train(name, order)
        if ended:
            yield ended.pop(0)
            continue
        for step in running.wait(progress, needed=bool(waiting)):
            if step.early:
                early(step.step)
            folder.spent(step.step, step.seconds)
            done.add(step.step)
            ended.append(step.step)
