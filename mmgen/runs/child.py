"""The command `python -m mmgen.runs.child FOLDER [STEP ...]`: trains steps for a run (`jobs`), one after the other.

Standard input: the recipe as a line of JSON, then lines with names of steps. It builds the model of the steps STEP and
those from which they start, by default of all. When the input ends, it finishes the current update, writes a
checkpoint and ends. Standard output: pickled messages; see `jobs.Child.receive`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

from ..commands import quiet
from ..data.datasets import Datasets
from ..errors import MmgenError, PluginError, RunError
from ..progress import Advance, Bars
from ..recipe.load import from_json
from ..recipe.tables import Recipe
from ..registry import blame, installed
from ..storage.model_files import build_model
from ..storage.run_folder import RunFolder
from ..storage.weights import state
from ..training import distributed
from ..training.callbacks import Events, Forwarded
from ..training.context import StepContext
from ..training.signals import stop_signals_as_ctrl_c
from .prepare import with_inputs_of
from .step import train_step

TRAINED = None  # the message after a trained step
Send = Callable[[object], None]


class Lines(Bars):
    """Sends the lines of progress."""

    def __init__(self, send: Send) -> None:
        super().__init__()
        self._send = send

    def say(self, text: str) -> None:
        self._send(text)

    @contextlib.contextmanager
    def task(self, label: str, total: int | None, unit: str = "", done: int = 0) -> Iterator[Advance]:
        with self._lines(label, total, unit, done) as advance:
            yield advance


def main() -> None:
    """The command. A person's mistake is a message to the run, which reports it."""
    folder, *only = sys.argv[1:]
    connection = Connection(os.dup(1), readable=False)
    os.dup2(2, 1)  # what libraries print is not a message

    def send(message: object) -> None:
        with contextlib.suppress(OSError):  # the run has ended
            connection.send(message)

    quiet()
    try:
        with stop_signals_as_ctrl_c():
            recipe = from_json(sys.stdin.readline(), installed(), "the run's recipe")
            steps = SimpleQueue[str]()
            Thread(target=_read_steps, args=(steps.put,), daemon=True).start()
            train_steps(RunFolder(Path(folder)), recipe, only, iter(steps.get, None), send)
    except KeyboardInterrupt:
        sys.exit(1)
    except (MmgenError, OSError) as error:
        send(error if isinstance(error, MmgenError) else RunError(str(error)))
        sys.exit(1)
    except Exception as error:
        if not (line := blame(error)):
            raise
        send(PluginError(line))
        sys.exit(1)


def _read_steps(put: Callable[[str], None]) -> None:
    """Reads names of steps. At the end of the input, the main thread is asked to stop."""
    for line in sys.stdin:
        put(line.strip())
    os.kill(os.getpid(), signal.SIGTERM)


def train_steps(folder: RunFolder, recipe: Recipe, only: Iterable[str], steps: Iterable[str], send: Send) -> None:
    """Train steps in turn, and write their texts or predictions. The run has checked the data."""
    processes, datasets = distributed.start(), Datasets(recipe)
    model = build_model(with_inputs_of(recipe, tuple(only)), datasets)
    initial = {name: tensor.clone() for name, tensor in state(model).items()}
    events = Forwarded(send) if recipe.callbacks else Events()
    for name in steps:
        step, place = recipe.steps[name], folder.step(name)
        context = StepContext(name, step, recipe.seed, place, processes, Lines(send), events)
        with folder.step_locked(name):
            train_step(context, recipe, model, initial, datasets, folder)
        send(TRAINED)


if __name__ == "__main__":
    main()
