"""The command `python -m mmgen.runs.child FOLDER SETTINGS FILES`: trains steps for a run (`jobs`), one after the other.

SETTINGS: see `Settings`. FILES: plugins. Standard input: the recipe as a line of JSON, then lines with names of steps.
When the input ends, it finishes the current update, writes a checkpoint and ends. Standard output: pickled messages;
see `jobs.Child.receive`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import NamedTuple

from ..data.datasets import Datasets
from ..errors import MmgenError, PluginError, RunError, blame
from ..progress import Advance, Bars
from ..recipe.load import from_json
from ..recipe.tables import Recipe
from ..registry import installed, load_files
from ..storage.model_files import build_model
from ..storage.run_folder import RunFolder
from ..storage.step_weights import inputs_of
from ..training import distributed
from ..training.callbacks import Events, Forwarded
from ..training.signals import stop_signals_as_ctrl_c
from ..training.threads import choose_threads
from .prepare import with_inputs_of
from .step import Steps

TRAINED = None  # the message after a trained step
Send = Callable[[object], None]


class Settings(NamedTuple):
    """What a child is started with.

    only     the steps whose inputs its model has, with those of earlier steps; more as such steps come; (): all
    threads  see `training.threads.choose_threads`
    jobs     the number of children that share the machine
    """

    only: tuple[str, ...] = ()
    threads: int | str | None = None
    jobs: int = 1


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
    folder, settings = RunFolder(Path(sys.argv[1])), Settings(*json.loads(sys.argv[2]))
    connection = Connection(os.dup(1), readable=False)
    os.dup2(2, 1)  # what libraries print is not a message

    def send(message: object) -> None:
        with contextlib.suppress(OSError):  # the run has ended
            connection.send(message)

    try:
        with stop_signals_as_ctrl_c():
            load_files(sys.argv[3:])
            recipe = from_json(sys.stdin.readline(), installed(), "the run's recipe")
            steps = SimpleQueue[str]()
            Thread(target=_read_steps, args=(steps.put,), daemon=True).start()
            train_steps(folder, recipe, settings, iter(steps.get, None), send)
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


def train_steps(folder: RunFolder, recipe: Recipe, settings: Settings, names: Iterable[str], send: Send) -> None:
    """Train steps in turn, and write their texts or predictions. The run has checked the data."""
    processes, datasets, only = distributed.start(), Datasets(recipe), tuple(settings.only)
    events, steps = Forwarded(send) if recipe.callbacks else Events(), None
    for name in names:
        if steps is None or not {*inputs_of(recipe, [name])} <= {*steps.model.inputs}:
            only = (*only, name) if only else ()
            model = build_model(with_inputs_of(recipe, only), datasets)
            choose_threads(settings.threads, model, settings.jobs)
            steps = Steps(recipe, folder, datasets, model, processes, Lines(send), events)
        with folder.step_locked(name):
            steps.train(name)
        send(TRAINED)


if __name__ == "__main__":
    main()
