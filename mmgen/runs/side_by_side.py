"""Side by side: steps that do not start from one another are learnt at the same time, each in a process of its own.

The run's own process learns nothing then. It starts the others, repeats what they say, and scores each step that has
been learnt and written for. A process builds the same model from the same recipe and seed, and what a step learns
depends on its start alone. So the weights are those of a run whose steps follow one another, to the bit.

The processes are forked from one that has imported what they need and has computed nothing (`forkserver`).
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path

import torch
from accelerate import Accelerator

from ..commands import quiet
from ..data.datasets import Datasets
from ..errors import MmgenError, RunError
from ..model import Model
from ..progress import Advance, Bars, Progress
from ..recipe.load import from_json
from ..recipe.tables import Recipe
from ..registry import installed
from ..storage.run_folder import RunFolder
from ..storage.weights import state
from ..training import distributed
from ..training.context import StepContext
from ..training.signals import handling
from ..training.threads import use_threads
from .prepare import model_of_steps
from .step import WEIGHTS, learn_step


@dataclass(frozen=True)
class Jobs:
    """How many processes learn at a time. `only`: the step that the run was asked for, if it was for one."""

    most: int
    only: str | None

    def refuse(self, accelerator: Accelerator) -> None:
        """Raises RunError for more than one job where a run has several processes already, or a GPU."""
        if self.most > 1 and (accelerator.num_processes > 1 or accelerator.device.type != "cpu"):
            where = "in several processes already" if accelerator.num_processes > 1 else "on a GPU"
            raise RunError(f"--jobs {self.most}: this run learns {where}; leave --jobs out")


@dataclass(frozen=True)
class Order:
    """What a process is to do. `recipe`: as JSON; `folder`: the run's."""

    step: str
    recipe: str
    folder: Path
    only: str | None
    threads: int


class Process:
    """A process that learns one step and writes for it. `ear` hears what it says, and the end of it."""

    def __init__(self, order: Order) -> None:
        self.step, self.began = order.step, time.monotonic()
        self.error: MmgenError | None = None
        self.ear, mouth = multiprocessing.Pipe()
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


@contextlib.contextmanager
def learnt(
    todo: Sequence[str], recipe: Recipe, folder: RunFolder, jobs: Jobs, progress: Progress
) -> Iterator[Iterator[str]]:
    """`todo`, each step once it has been learnt and written for; with one job as it is, with nothing done before. When
    the block is left, processes that still learn are stopped. Raises RunError where one fails."""
    running: dict[str, Process] = {}
    try:
        yield iter(todo) if jobs.most == 1 else _as_they_end(todo, recipe, folder, jobs, running, progress)
    finally:
        for process in running.values():
            process.stop()
        for process in running.values():
            process.join()


def _as_they_end(
    todo: Sequence[str], recipe: Recipe, folder: RunFolder, jobs: Jobs, running: dict[str, Process], progress: Progress
) -> Iterator[str]:
    done = {name for name in recipe.steps if folder.finished(name, WEIGHTS)}
    ended = [name for name in todo if name in done]  # nothing is left to learn
    waiting = [name for name in todo if name not in done]
    text, threads = recipe.model_dump_json(), torch.get_num_threads()
    while ended or waiting or running:
        free = [name for name in waiting if recipe.steps[name].before in {None, *done}]
        for name in free[: jobs.most - len(running)]:
            waiting.remove(name)
            running[name] = Process(Order(name, text, folder.path, jobs.only, threads))
        if ended:
            yield ended.pop(0)
            continue
        ready = wait([process.ear for process in running.values()])
        for process in [process for process in running.values() if process.ear in ready]:
            if not process.hear(progress):
                del running[process.step]
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
    use_threads(order.threads)
    datasets = Datasets(recipe)
    model, recipe = model_of_steps(recipe, recipe.ordered(order.only), datasets, folder, accelerator, Progress())
    initial = {name: tensor.clone() for name, tensor in state(model).items()}
    context = StepContext(
        order.step, recipe.steps[order.step], recipe.seed, folder.step(order.step), accelerator, progress
    )
    learn_step(context, recipe, model, initial, datasets, folder)
