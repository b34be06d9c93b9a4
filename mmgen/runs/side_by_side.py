"""Side by side: steps that do not start from one another are learnt at the same time, each in a process of its own.

The run's own process learns nothing then. It starts the others, repeats what they say, and scores each step that has
been learnt and written for. A process builds the same model from the same recipe and seed, and what a step learns
depends on its start alone. So the weights are those of a run whose steps follow one another, to the bit.

The processes are forked from one that has imported what they need and has computed nothing (`forkserver`).

A step that reads nothing whose features are still to be made begins before they are (`begin`): the run's process makes
them meanwhile.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch
from accelerate import Accelerator
from torch import Tensor

from ..commands import quiet
from ..data.datasets import Datasets
from ..errors import MmgenError, RunError
from ..files import write_json
from ..model import Model
from ..progress import Advance, Bars, Progress
from ..recipe.load import from_json
from ..recipe.tables import Recipe
from ..registry import installed
from ..storage.run_folder import RunFolder
from ..storage.weights import save_weights, state
from ..training import distributed
from ..training.context import StepContext
from ..training.signals import handling
from ..training.threads import choose_threads, cores
from .prepare import INPUTS, model_of_steps, unmade
from .step import WEIGHTS, learn_step
from .step_weights import load_step


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


@dataclass(frozen=True)
class Order:
    """What a process is to do.

    recipe   as JSON
    folder   the run's
    only     builds the model of this step and those that it starts from; by default that of all steps
    threads  see `training.threads.choose_threads`
    jobs     how many processes share the cores
    early    whether features are still being made, and the process that others are forked from is not there yet
    """

    step: str
    recipe: str
    folder: Path
    only: str | None
    threads: int | str | None
    jobs: int
    early: bool = False


class Process:
    """A process that learns one step and writes for it. `ear` hears what it says, and the end of it."""

    def __init__(self, order: Order) -> None:
        self.step, self.early, self.began = order.step, order.early, time.monotonic()
        self.error: MmgenError | None = None
        self.ear, mouth = multiprocessing.Pipe()
        if order.early:
            self._process: BaseProcess = multiprocessing.get_context("spawn").Process(target=learn, args=(order, mouth))
        else:
            self._process = multiprocessing.get_context("forkserver").Process(target=learn, args=(order, mouth))
        self._process.start()
        mouth.close()

    def hear(self, progress: Progress) -> bool:
        """Repeats the next thing that it says; False when it has ended. Raises RunError where it has failed."""
        try:
            said = self.ear.recv()
        except EOFError:
            self._process.join()
            self._check(self._process.exitcode or 0)
            return False
        if isinstance(said, MmgenError):
            self.error = said
        else:
            progress.say(said)
        return True

    def _check(self, status: int) -> None:
        if self.error:
            raise self.error
        if status:
            how = f"signal {-status}" if status < 0 else f"exit status {status}"
            raise RunError(
                f"step '{self.step}': its process ended with {how}; the same command goes on from the last checkpoint"
            )

    def stop(self) -> None:
        """Asks it to end. It finishes the update that it computes, and keeps a checkpoint."""
        self._process.terminate()

    def join(self) -> None:
        self._process.join()


Running = dict[str, Process]  # processes that learn, by their step


@contextlib.contextmanager
def processes() -> Iterator[Running]:
    """Room for processes. When the block is left, those that still learn are stopped."""
    running: Running = {}
    try:
        yield running
    finally:
        for process in running.values():
            process.stop()
        for process in running.values():
            process.join()


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
        order = Order(name, recipe.model_dump_json(), folder.path, name, threads, jobs.most, early=True)
        running[name] = Process(order)


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
    waiting = [name for name in todo if name not in {*done, *running}]
    text, threads = recipe.model_dump_json(), torch.get_num_threads()
    while ended or waiting or running:
        free = [name for name in waiting if recipe.steps[name].before in {None, *done}]
        for name in free[: jobs.most - len(running)]:
            waiting.remove(name)
            running[name] = Process(Order(name, text, folder.path, jobs.only, threads, jobs.most))
        if ended:
            yield ended.pop(0)
            continue
        ready = wait([process.ear for process in running.values()])
        for process in [process for process in running.values() if process.ear in ready]:
            if not process.hear(progress):
                del running[process.step]
                if process.early:
                    early(process.step)
                folder.spent(process.step, time.monotonic() - process.began)
                done.add(process.step)
                ended.append(process.step)


def preload(model: Model) -> None:
    """Names what processes import before they part: what a model's classes come from."""
    modules = {__name__, *(type(module).__module__ for module in model.modules())}
    multiprocessing.get_context("forkserver").set_forkserver_preload(sorted(modules))


class Spoken(Bars):
    """Lines for the run's process, which shows them."""

    def __init__(self, mouth: Connection) -> None:
        super().__init__()
        self.mouth = mouth

    @contextlib.contextmanager
    def task(self, label: str, total: int | None, unit: str = "", done: int = 0) -> Iterator[Advance]:
        with self._lines(label, total, unit, done) as advance:
            yield advance

    def say(self, text: str) -> None:
        self.mouth.send(text)


def learn(order: Order, mouth: Connection) -> None:
    """What one of the processes does. Errors that a person can cause go to the run, which tells them."""

    def stop() -> None:
        raise KeyboardInterrupt

    os.setsid()  # Ctrl-C is for the run, which stops the others
    threading.Thread(target=_end_with_the_run, args=(mouth,), daemon=True).start()
    quiet()
    try:
        with handling(stop):
            _learn(order, Spoken(mouth))
    except KeyboardInterrupt:
        sys.exit(1)
    except (MmgenError, OSError) as error:
        told = error if isinstance(error, MmgenError) else RunError(f"step '{order.step}': {error}")
        mouth.send(told)
        sys.exit(1)


def _end_with_the_run(mouth: Connection) -> None:
    """The run may be killed. So is this process then, which spoils nothing, and the next run may begin."""
    with contextlib.suppress(EOFError, OSError):
        mouth.recv()
    os._exit(1)


def _learn(order: Order, progress: Progress) -> None:
    recipe = from_json(order.recipe, installed(), "the run's recipe")
    accelerator, folder = distributed.start(), RunFolder(order.folder)
    datasets = Datasets(recipe)
    model, recipe = model_of_steps(recipe, recipe.ordered(order.only), datasets, folder, accelerator, Progress())
    choose_threads(order.threads, model, order.jobs)
    initial = {name: tensor.clone() for name, tensor in state(model).items()}
    context = StepContext(
        order.step, recipe.steps[order.step], recipe.seed, folder.step(order.step), accelerator, progress
    )
    learn_step(context, recipe, model, initial, datasets, folder)
