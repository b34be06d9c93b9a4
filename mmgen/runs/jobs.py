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
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait

import torch

from ..errors import MmgenError, RunError
from ..recipe.tables import Recipe
from ..storage.run_folder import RunFolder
from ..training.callbacks import Event, Events
from ..training.distributed import Processes
from ..training.threads import ASKED, cores
from .child import TRAINED

Say = Callable[[str], None]
VISIBLE = "CUDA_VISIBLE_DEVICES"
OF_TORCHRUN = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "GROUP_RANK")


class Child:
    """A child command, which trains steps of a run in turn, with some `threads` and on a GPU (as in `VISIBLE`).

    connection  receives its messages
    step        the current or last step, which began at the time `began`
    """

    def __init__(
        self, folder: RunFolder, recipe: Recipe, only: Sequence[str], threads: int, gpu: str | None = None
    ) -> None:
        environment = {name: value for name, value in os.environ.items() if name not in OF_TORCHRUN}
        environment |= dict.fromkeys(ASKED, str(threads)) | ({VISIBLE: gpu} if gpu else {})
        self.connection, remote_end = multiprocessing.Pipe(duplex=False)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mmgen.runs.child", str(folder.path), *only],
            stdin=subprocess.PIPE,
            stdout=remote_end.fileno(),
            env=environment,
            start_new_session=True,  # Ctrl-C goes to the run's process, which stops this one
        )
        remote_end.close()
        self._write(recipe.model_dump_json())

    def train(self, step: str) -> None:
        """Start training of a step."""
        self.step, self.began = step, time.monotonic()
        self._write(step)

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # the process has ended; `receive` raises
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()

    def receive(self) -> object:
        """The next message: a line of progress, an event of callbacks, or TRAINED. Raises the error of the step."""
        try:
            message = self.connection.recv()
        except (EOFError, OSError):
            status = self._process.wait()
            ending = f"signal {-status}" if status < 0 else f"exit status {status}"
            how = "run the same command again to resume from the last checkpoint"
            raise RunError(f"step '{self.step}': its process ended with {ending}; {how}") from None
        if isinstance(message, MmgenError):
            raise message
        return message

    def stop(self) -> None:
        """Let the process end: it finishes the current update and writes a checkpoint."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self.connection.close()

    def wait(self) -> None:
        """Wait for the end of the process."""
        self._process.wait()


def start_child(folder: RunFolder, recipe: Recipe, only: Sequence[str], number: int) -> Child:
    """The child with this number on this machine: with the threads that the run has chosen for it, and its GPU."""
    gpu = None
    if torch.cuda.is_available():
        visible = os.environ.get(VISIBLE) or ",".join(map(str, range(torch.cuda.device_count())))
        gpu = visible.split(",")[number]
    return Child(folder, recipe, only, torch.get_num_threads(), gpu)


@dataclass(frozen=True)
class Jobs:
    """How many steps train at the same time, and what starts a child: see `start_child`."""

    count: int
    start: Callable[[RunFolder, Recipe, Sequence[str], int], Child] = start_child

    @classmethod
    def of(cls, requested: int | None, recipe: Recipe, only: Sequence[str], processes: Processes) -> Jobs:
        """The requested number, or else the recipe's as far as there are cores or GPUs. Raises RunError for a number
        above 1 if there are several processes already, or fewer GPUs."""
        several = processes.num_processes > 1
        gpus = torch.cuda.device_count() if processes.device.type == "cuda" else 0
        if requested is None:
            return cls(1 if several or only else min(recipe.jobs, gpus or cores()))
        if requested > 1 and several:
            raise RunError(f"--jobs {requested}: this run trains in several processes already; leave out --jobs")
        if gpus and requested > gpus:
            raise RunError(f"--jobs {requested}: every step needs its own GPU; use at most --jobs {gpus}")
        return cls(requested)

    def train(
        self, steps: Sequence[str], recipe: Recipe, folder: RunFolder, only: Sequence[str], say: Say, events: Events
    ) -> Generator[str]:
        """Train steps, each as soon as the step from which it starts is trained, and yield each that is trained; with a
        count of 1, yield untrained steps. Raises the error of a step. When the generator ends, all children end."""
        if self.count == 1:
            yield from steps
            return
        done = {name for name in recipe.steps if folder.trained(recipe, name)}
        trained, waiting = [name for name in steps if name in done], [name for name in steps if name not in done]
        idle, training = list[Child](), dict[Connection, Child]()
        try:
            while trained or waiting or training:
                startable = [name for name in waiting if recipe.steps[name].before in {None, *done}]
                for name in startable[: self.count - len(training)]:
                    waiting.remove(name)
                    child = idle.pop() if idle else self.start(folder, recipe, only, len(training))
                    training[child.connection] = child
                    child.train(name)
                if trained:
                    yield trained.pop(0)
                    continue
                for child in [training[ready] for ready in wait(list(training)) if isinstance(ready, Connection)]:
                    message = child.receive()
                    if isinstance(message, Event):
                        events.send(message.method, *message.arguments)
                    elif message is not TRAINED:
                        say(str(message))
                    else:
                        idle.append(training.pop(child.connection))
                        folder.spent(child.step, time.monotonic() - child.began)
                        done.add(child.step)
                        trained.append(child.step)
        finally:
            children = [*idle, *training.values()]
            if training:
                names = ", ".join(child.step for child in training.values())
                say(f"stopping {names}: after the current update, with a checkpoint")
            for child in children:
                child.stop()
            for child in children:
                child.wait()
