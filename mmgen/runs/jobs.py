"""Train several steps at the same time, each in a child command (`child`): on its share of the cores, or on its GPU.

The run's process then trains no step: it starts children, prints what they say, and scores each trained step. Every
child builds the same model from the same recipe and seed, and the weights of a step depend only on its start. So they
equal those of a sequential run: to the bit on CPUs, up to rounding on a GPU.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait

import torch

from ..errors import MmgenError, RunError
from ..recipe.tables import Recipe
from ..storage.run_folder import RunFolder
from ..training.context import Events
from ..training.distributed import Processes
from ..training.threads import cores
from .child import TRAINED, Settings

VISIBLE = "CUDA_VISIBLE_DEVICES"
OF_TORCHRUN = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "GROUP_RANK")


class Child:
    """A child command, which trains steps of a run in turn; on a GPU (as in `VISIBLE`), if one is given.

    connection  sends it names of steps, and receives its messages
    step        the current or last step
    """

    def __init__(self, folder: RunFolder, recipe: Recipe, settings: Settings, gpu: str | None = None) -> None:
        environment = {name: value for name, value in os.environ.items() if name not in OF_TORCHRUN}
        self.connection, remote_end = multiprocessing.Pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mmgen.runs.child", str(remote_end.fileno())],
            pass_fds=[remote_end.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=2,  # what libraries print
            env=environment | ({VISIBLE: gpu} if gpu else {}),
            start_new_session=True,  # Ctrl-C goes to the run's process, which stops this one
        )
        remote_end.close()
        self._send((folder.path, recipe.model_dump(mode="json"), settings))

    def train(self, step: str) -> None:
        """Start training of a step."""
        self.step = step
        self._send(step)

    def _send(self, message: object) -> None:
        with contextlib.suppress(OSError):  # the process has ended; `receive` raises
            self.connection.send(message)

    def receive(self) -> object:
        """The next message: a line of progress, an event of callbacks, or TRAINED. Raises the error of the step."""
        try:
            message = self.connection.recv()
        except (EOFError, OSError):
            how = "run the same command again to resume from the last checkpoint"
            raise RunError(f"step '{self.step}': its process ended ({self._process.wait()}); {how}") from None
        if isinstance(message, MmgenError):
            raise message
        return message

    def stop(self) -> None:
        """Let the process end: it finishes the current update and writes a checkpoint."""
        self.connection.close()

    def wait(self) -> None:
        """Wait for its end."""
        self._process.wait()


def start_child(folder: RunFolder, recipe: Recipe, settings: Settings, number: int) -> Child:
    """The child with this number on this machine, on its GPU: the last for the first child, since the run's process
    extracts features on the first."""
    gpu = None
    if torch.cuda.is_available():
        visible = (os.environ.get(VISIBLE) or ",".join(map(str, range(torch.cuda.device_count())))).split(",")
        gpu = visible[-1 - number % len(visible)]
    return Child(folder, recipe, settings, gpu)


@dataclass(frozen=True)
class Jobs:
    """How many steps train at the same time, and what starts a child: see `start_child`."""

    count: int
    start: Callable[[RunFolder, Recipe, Settings, int], Child] = start_child

    @classmethod
    def of(cls, requested: int | None, recipe: Recipe, only: Sequence[str], processes: Processes) -> Jobs:
        """The requested number, or else the recipe's as far as there are cores or GPUs. Raises RunError for a number
        above 1 if there are several processes already."""
        several = processes.num_processes > 1
        if several and (requested or 1) > 1:
            raise RunError(f"--jobs {requested}: this run trains in several processes already; leave out --jobs")
        gpus = torch.cuda.device_count() if processes.device.type == "cuda" else 0
        return cls(requested or (1 if several or only else min(recipe.jobs, gpus or cores())))


@dataclass
class Children:
    """The steps of a run that its children train, each as soon as the step from which it starts is trained.

    say  prints a line
    """

    jobs: Jobs
    names: Sequence[str]
    recipe: Recipe
    folder: RunFolder
    settings: Settings
    say: Callable[[str], None]

    def __post_init__(self) -> None:
        self._done: set[str | None] = {None, *(n for n in self.recipe.steps if self.folder.trained(self.recipe, n))}
        self._trained = [name for name in self.names if name in self._done]
        self._waiting = [name for name in self.names if name not in self._done]
        self._idle, self._training = list[Child](), dict[Connection, Child]()

    def start(self, names: Sequence[str] | None = None) -> int:
        """Train as many steps as can start, none in children if there is one job; how many train. `names`: those that
        may while features are extracted, in all but one of the children at most."""
        most, settings = self.jobs.count * (self.jobs.count > 1), self.settings
        if names is not None:
            most, settings = self.jobs.count - 1, settings._replace(only=tuple(names))
        startable = [name for name in self._waiting if self.recipe.steps[name].before in self._done]
        for name in [name for name in startable if names is None or name in names][: most - len(self._training)]:
            self._waiting.remove(name)
            new = self.folder, self.recipe, settings, len(self._training)
            child = self._idle.pop() if self._idle else self.jobs.start(*new)
            self._training[child.connection] = child
            child.train(name)
        return len(self._training)

    def train(self, events: Events) -> Iterator[str]:
        """Train all steps, and yield each that is trained; for one job, yield untrained steps. Raises the error of a
        step."""
        if self.jobs.count == 1:
            yield from self.names
        while self.jobs.count > 1 and (self._trained or self._waiting or self._training):
            self.start()
            if self._trained:
                yield self._trained.pop(0)
                continue
            for child in [self._training[end] for end in wait(list(self._training)) if isinstance(end, Connection)]:
                message = child.receive()
                if isinstance(message, tuple):
                    events(*message)
                elif message is not TRAINED:
                    self.say(str(message))
                else:
                    self._idle.append(self._training.pop(child.connection))
                    self._done.add(child.step)
                    self._trained.append(child.step)

    def close(self) -> None:
        """End all children, each after its update."""
        for child in self._training.values():
            self.say(f"stopping {child.step}: after the current update, with a checkpoint")
        children = [*self._idle, *self._training.values()]
        for child in children:
            child.stop()
        for child in children:
            child.wait()
