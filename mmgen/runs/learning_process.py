"""Learning process: what a process does that learns steps for a run (`side_by_side`). It builds data and model once,
and learns the steps that it is told, one after another."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue

from ..commands import quiet
from ..data.datasets import Datasets
from ..errors import MmgenError
from ..progress import Advance, Bars, Progress
from ..recipe.load import from_json
from ..registry import installed
from ..storage.run_folder import RunFolder
from ..storage.weights import state
from ..training import distributed
from ..training.context import StepContext
from ..training.signals import handling
from ..training.threads import choose_threads
from .prepare import model_of_steps
from .step import learn_step

LEARNT = None  # what it says when it has learnt a step


@dataclass(frozen=True)
class Order:
    """What a process is to learn from.

    recipe   as JSON
    folder   the run's
    only     builds the model of this step and those that it starts from; by default that of all steps
    threads  see `training.threads.choose_threads`
    jobs     how many processes share the cores
    early    whether features are still being made, so that the model has `only`'s inputs
    """

    recipe: str
    folder: Path
    only: str | None
    threads: int | str | None
    jobs: int
    early: bool = False


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
    steps: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(mouth, steps), daemon=True).start()
    quiet()
    try:
        with handling(stop):
            _learn(order, steps, mouth)
    except KeyboardInterrupt:
        sys.exit(1)
    except (MmgenError, OSError) as error:
        mouth.send(error)
        sys.exit(1)


def _listen(mouth: Connection, steps: SimpleQueue[str]) -> None:
    """Hears which steps to learn. The run may be killed. So is this process then, which spoils nothing, and the next
    run may begin."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            steps.put(mouth.recv())
    os._exit(1)


def _learn(order: Order, steps: SimpleQueue[str], mouth: Connection) -> None:
    """Step after step, as they are told, until the process is stopped."""
    recipe = from_json(order.recipe, installed(), "the run's recipe")
    accelerator, folder = distributed.start(), RunFolder(order.folder)
    datasets = Datasets(recipe)
    model, recipe = model_of_steps(recipe, recipe.ordered(order.only), datasets, folder, accelerator, Progress())
    choose_threads(order.threads, model, order.jobs)
    initial = {name: tensor.clone() for name, tensor in state(model).items()}
    while True:
        name = steps.get()
        context = StepContext(name, recipe.steps[name], recipe.seed, folder.step(name), accelerator, Spoken(mouth))
        learn_step(context, recipe, model, initial, datasets, folder)
        mouth.send(LEARNT)
