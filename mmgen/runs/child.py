"""The steps of a run: trained, resumed, written, scored; and the command `python -m mmgen.runs.child CONNECTION`, which
trains steps for a run (`jobs`), one after the other.

CONNECTION: the file descriptor of a pipe. It receives the folder, the recipe as JSON and `Settings`, then names of
steps, and sends messages; see `jobs.Child.receive`. When the pipe is closed, the command finishes the current update,
writes a checkpoint and ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import NamedTuple

from .. import report
from ..configs import LIKELIHOOD
from ..data.datasets import Datasets
from ..errors import as_mmgen_error, blame
from ..evaluation import score
from ..evaluation.answers import answers_files, read_answers, write_answers
from ..model import Model
from ..parts import Metric
from ..progress import Bars, Progress
from ..recipe.load import from_values
from ..recipe.tables import Recipe
from ..registry import installed, load_files
from ..storage.generations import read_likelihoods
from ..storage.model_files import build_model, inputs_of, load_step
from ..storage.run_folder import RunFolder
from ..storage.weights import load_state, read_tensors, save_weights, state
from ..training import distributed, train
from ..training.context import Events, StepContext, ignore
from ..training.distributed import Processes
from ..training.signals import stop_signals_as_ctrl_c
from ..training.threads import choose_threads
from .prepare import with_inputs_of
from .start_from_weights import load_start

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
        self._send, self.terminal = send, False

    def say(self, text: str) -> None:
        self._send(text)


@dataclass
class Steps:
    """Trains and scores the steps of a run, with one model.

    recipe   the run's, with the files of its features
    initial  the model's weights before any step
    """

    recipe: Recipe
    folder: RunFolder
    datasets: Datasets
    model: Model
    processes: Processes
    progress: Progress
    events: Events

    def __post_init__(self) -> None:
        self.initial = {name: tensor.clone() for name, tensor in state(self.model).items()}

    def train(self, name: str) -> None:
        """Train a step, and write the texts or predictions of its test examples, as far as it is unfinished."""
        recipe, folder, step = self.recipe, self.folder, self.recipe.steps[name]
        place = folder.step(name)
        context = StepContext(name, step, recipe.seed, place, self.processes, self.progress, self.events)
        if trained := folder.trained(recipe, name):
            self._complete(name)
        else:
            self._init(name)
            train.train(self.model, context, [*self.datasets.sources(name).values()])
        files = {file: asked for file, asked in answers_files(recipe, name).items() if not folder.finished(name, file)}
        if step.evaluate and files:
            if trained:
                load_step(self.model, recipe, folder, name, self.initial)
            write_answers(self.model, context, self.datasets.scored_by(name), files)

    def _init(self, name: str) -> None:
        """Give the model the weights that a step starts from."""
        before, loaded = self.recipe.steps[name].before, set[str]()
        if before is not None:
            load_step(self.model, self.recipe, self.folder, before, self.initial)
        else:
            load_state(self.model, self.initial, "the initial model")
            if not self.folder.begun(name):  # a checkpoint has all weights
                loaded = load_start(self.recipe, name, self.model, self.progress)
        init_objectives(self.recipe, name, self.model, loaded)

    def _complete(self, name: str) -> None:
        """Add to a trained step's weights those of inputs that the model which trained it did not have."""
        path = self.folder.weights(name)
        missing = path.exists() and self.initial.keys() - read_tensors(path)[0].keys()
        if missing and self.processes.is_main_process:
            load_step(self.model, self.recipe, self.folder, name, self.initial)
            save_weights(self.model, path, step=name)

    def score(self, name: str, metrics: Mapping[str, Metric]) -> Mapping[str, float | None]:
        """Score the texts or predictions of a step, for its row of the table. Returns the scores by column."""
        recipe, place = self.recipe, self.folder.step(name)
        answers, examples = read_answers(recipe, name, place), self.datasets.scored_by(name)
        configs = recipe.judging(name)
        likely = {key: read_likelihoods(place) for key, config in configs.items() if LIKELIHOOD in config.judges}
        judging = {key: metrics[key] for key in configs}
        scores = score.score_step(name, answers, examples, judging, self.progress, likely)
        score.write_scores(place, scores)
        try:
            renderer = report.step_renderer(recipe, name)
            self.progress.say(report.samples(answers, examples, renderer, recipe.inputs.values()))
        except Exception as error:  # of any kind: renderers may come from third parties
            self.progress.say(f"{name}: no samples are shown: {blame(error) or error}")
        return scores.values


def init_objectives(recipe: Recipe, step: str, model: Model, published_names: Collection[str] = ()) -> None:
    """Initialise the heads of a step that no earlier step has trained, from the step's initial weights.
    `published_names`: parameters with published weights; a head with such parameters is not initialised."""
    *before, last = recipe.chain(step)
    trained = {name for earlier in before for name in recipe.steps[earlier].objectives}
    for name in recipe.steps[last].objectives:
        if name not in trained and not any(key.startswith(f"objectives.{name}.") for key in published_names):
            train.init_objective(model, name, recipe.seed)


def main() -> None:
    """The command. A person's mistake is a message to the run, which reports it."""
    connection = Connection(int(sys.argv[1]))

    def send(message: object) -> None:
        with contextlib.suppress(OSError):  # the run has ended
            connection.send(message)

    try:
        with stop_signals_as_ctrl_c():
            path, values, settings = connection.recv()
            load_files(values["plugins"])
            recipe, steps = from_values(values, installed(), "the run's recipe"), SimpleQueue[str]()
            Thread(target=_receive_steps, args=(connection, steps), daemon=True).start()
            train_steps(RunFolder(path), recipe, settings, iter(steps.get, None), send)
    except KeyboardInterrupt:
        sys.exit(1)
    except Exception as error:
        if not (known := as_mmgen_error(error)):
            raise
        send(known)
        sys.exit(1)


def _receive_steps(connection: Connection, steps: SimpleQueue[str]) -> None:
    """Receives names of steps. When the run ends or closes the connection, the main thread is asked to stop."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            steps.put(connection.recv())
    os.kill(os.getpid(), signal.SIGTERM)


def train_steps(folder: RunFolder, recipe: Recipe, settings: Settings, names: Iterable[str], send: Send) -> None:
    """Train steps in turn, and write their texts or predictions. The run has checked the data."""
    processes, datasets, only = distributed.start(), Datasets(recipe), tuple(settings.only)
    events: Events = (lambda *event: send(event)) if recipe.callbacks else ignore
    steps = None
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
