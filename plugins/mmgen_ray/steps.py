"""Runs of a recipe as tasks: one for each seed, which waits for one for each step."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmgen.commands import quiet
from mmgen.progress import Progress
from mmgen.runs.side_by_side import Elsewhere, Ended, Event, Events
from mmgen.runs.training_process import TRAINED, Order, train_ordered

from .engine import POLL, Engine, Reports

AUTO_THREADS = "auto"  # the number that suits the model, as `mmgen run` chooses it


@dataclass(frozen=True)
class Seeds:
    """The runs of a recipe. `folder`: where relative paths begin."""

    folder: Path
    recipe: Path
    profile: str | None
    sets: tuple[str, ...]
    steps: tuple[str, ...]
    fresh: bool
    threads: int | None


def run_seed(work: Seeds, seed: int, engine: Engine) -> None:
    """The task of a seed: check the data, let others train the steps, and score them."""
    from mmgen.recipe.load import load
    from mmgen.registry import installed
    from mmgen.runs.run import run

    quiet()
    with contextlib.chdir(work.folder):
        recipe, layers = load(work.recipe, installed(), work.profile, work.sets)
        run(
            recipe.model_copy(update={"seed": seed}),
            only=work.steps,
            fresh=work.fresh,
            progress=Reports(engine.board, f"seed {seed}", speaks=True),
            threads=work.threads or AUTO_THREADS,
            jobs=Elsewhere(max(2, engine.slots), lambda: opened(engine, f"seed {seed}")),
            layers=layers,
        )


@contextlib.contextmanager
def opened(engine: Engine, name: str) -> Iterator[StepTasks]:
    """The tasks of a run's steps; unfinished ones are cancelled at the end of the block."""
    import ray

    tasks = StepTasks(engine, name)
    try:
        yield tasks
    finally:
        for task in tasks.tasks:
            ray.cancel(task, force=True)


class StepTasks:
    """Trains each step in a task (`mmgen.runs.side_by_side.Workers`)."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.engine, self.name, self.events = engine, name, Events()
        self.tasks: dict[Any, str] = {}
        self.early: set[str] = set()

    @property
    def training(self) -> Collection[str]:
        return self.tasks.values()

    def train(self, step: str, order: Order) -> None:
        if order.early:
            self.early.add(step)
        self.tasks[self.engine.submit(train_one, order, step, Path.cwd(), self.engine.board, self.name)] = step

    def wait(self, progress: Progress, needed: bool) -> list[Ended]:
        names = {task: f"step '{step}'" for task, step in self.tasks.items()}
        results = self.engine.results(names, POLL)
        ended = []
        for task, name in names.items():
            if name in results:
                step = self.tasks.pop(task)
                seconds, events = results[name]
                for event in events:
                    self.events.send(event.method, *event.arguments)
                ended.append(Ended(step, step in self.early, seconds))
        return ended


def train_one(order: Order, step: str, folder: Path, board: Any, name: str) -> tuple[float, list[Event]]:
    """The task of a step: train it, write its texts. The seconds it took, and the events of its callbacks."""
    began, events = time.monotonic(), list[Event]()

    def send(message: object) -> None:
        if isinstance(message, Event):
            events.append(message)
        elif message is not TRAINED:
            board.say.remote(f"{name}: {message}")

    quiet()
    with contextlib.chdir(folder):
        train_ordered(order, [step], send)
    return time.monotonic() - began, events
