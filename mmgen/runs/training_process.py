"""Inside a process that trains steps for a run (`side_by_side`): build data and model once, train steps in turn."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
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
from ..training.callbacks import Events, Forwarded
from ..training.context import StepContext
from ..training.signals import stop_signals_as_ctrl_c
from ..training.threads import choose_threads
from .prepare import model_of_steps
from .step import train_step

TRAINED = None  # the message of a process after a trained step


@dataclass(frozen=True)
class Order:
    """The task of a process.

    recipe   the recipe as JSON
    folder   the run folder
    only     build the model for these steps and the steps from which they start; (): for all steps
    threads  see `training.threads.choose_threads`
    jobs     number of processes that share the cores
    early    whether features are still being extracted; the model then has only the inputs of `only`
    """

    recipe: str
    folder: Path
    only: tuple[str, ...]
    threads: int | str | None
    jobs: int
    early: bool = False


class Spoken(Bars):
    """Sends progress lines to the run's process, which prints them."""

    def __init__(self, send: Callable[[str], None]) -> None:
        super().__init__()
        self.send = send

    @contextlib.contextmanager
    def task(self, label: str, total: int | None, unit: str = "", done: int = 0) -> Iterator[Advance]:
        with self._lines(label, total, unit, done) as advance:
            yield advance

    def say(self, text: str) -> None:
        self.send(text)


def train_steps(order: Order, connection: Connection) -> None:
    """The main function of a process. The user's mistakes are sent to the run's process, which prints them."""
    os.setsid()  # Ctrl-C goes to the run's process, which stops this process
    steps: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_receive_steps, args=(connection, steps), daemon=True).start()
    quiet()
    try:
        with stop_signals_as_ctrl_c():
            train_ordered(order, iter(steps.get, None), connection.send)
    except KeyboardInterrupt:
        sys.exit(1)
    except (MmgenError, OSError) as error:
        with contextlib.suppress(OSError):  # the run's process has been killed, which may be the error
            connection.send(error)
        sys.exit(1)


def _receive_steps(connection: Connection, steps: SimpleQueue[str]) -> None:
    """Receive the names of steps to train. If the run's process is killed, this process exits at once, so that the next
    run can start; no file is damaged."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            steps.put(connection.recv())
    os._exit(1)


def train_ordered(order: Order, steps: Iterable[str], send: Callable[[object], None]) -> None:
    """Train the requested steps in turn. `send` gets the lines of progress, the events of callbacks, and TRAINED after
    each step."""
    recipe = from_json(order.recipe, installed(), "the run's recipe")
    accelerator, folder = distributed.start(), RunFolder(order.folder)
    datasets = Datasets(recipe)
    model, recipe = model_of_steps(recipe, recipe.ordered(order.only), datasets, folder, accelerator, Progress())
    choose_threads(order.threads, model, order.jobs)
    initial = {name: tensor.clone() for name, tensor in state(model).items()}
    for name in steps:
        step, place, spoken = recipe.steps[name], folder.step(name), Spoken(send)
        events = Forwarded(send) if recipe.callbacks else Events()
        context = StepContext(name, step, recipe.seed, place, accelerator, spoken, events)
        train_step(context, recipe, model, initial, datasets, folder)
        send(TRAINED)
