"""A Ray that is started or joined: commands of mmgen as its tasks, and the steps of a run in child commands on it."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from mmgen.errors import MmgenError, RunError, install_extra
from mmgen.progress import Bars
from mmgen.recipe.tables import Recipe
from mmgen.runs.child import TRAINED, Settings
from mmgen.runs.jobs import Child
from mmgen.storage.run_folder import RunFolder

LOST = "its worker ended 4 times, perhaps for lack of memory; run the same command again to continue"


@dataclass(frozen=True)
class Cluster:
    """A Ray that runs: the CPUs and GPUs of a task, and how many tasks can run at the same time (`slots`)."""

    cpus: int
    gpus: int
    slots: int

    def submit(self, function: Callable[..., object], *arguments: object, **options: object) -> Any:
        """Start a task; its first argument is the current folder."""
        import ray

        needs = {"num_cpus": self.cpus, "num_gpus": self.gpus, "max_retries": 3}
        return ray.remote(**needs, **options)(function).remote(Path.cwd(), *arguments)

    def run_all(self, commands: Mapping[str, Sequence[str]]) -> None:
        """Run commands of mmgen, by name. Raises RunError for one that fails; the others end with Ray."""
        import ray

        names = {self.submit(run_command, command, retry_exceptions=True): name for name, command in commands.items()}
        progress, waiting = Bars(), list(names)
        with progress.task("ray", len(names), "commands") as advance:
            while waiting:
                (ended,), waiting = ray.wait(waiting)
                try:
                    status, lines = ray.get(ended)
                except ray.exceptions.RayError:
                    raise RunError(f"{names[ended]}: {LOST}") from None
                if status:
                    raise RunError(f"{names[ended]}: {''.join(lines[-1:]).removeprefix('error: ')}")
                for line in lines:
                    progress.say(f"{names[ended]}: {line}")
                advance()


def run_command(folder: Path, arguments: Sequence[str]) -> tuple[int, list[str]]:
    """The task of a command: its exit status, and its lines on standard error. Raises RuntimeError if it is killed."""
    done = subprocess.run([sys.executable, "-m", "mmgen", *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode < 0:
        raise RuntimeError(f"killed by signal {-done.returncode}")
    return done.returncode, done.stderr.strip().splitlines()


def train_step(place: Path, threads: int, run: tuple[RunFolder, Recipe, Settings], step: str) -> Iterator[object]:
    """The task of a step: the messages of its child command."""
    with contextlib.chdir(place):
        folder, recipe, settings = run
        child = Child(folder, recipe, settings._replace(threads=threads, jobs=1))
        child.train(step)
        message: object = step
        while message is not TRAINED and not isinstance(message, MmgenError):
            try:
                message = child.receive()
            except MmgenError as error:
                message = error
            yield message
        child.stop()


class RemoteChild(Child):
    """A child command on a worker, a new one for each step."""

    def __init__(self, cluster: Cluster, folder: RunFolder, recipe: Recipe, settings: Settings, number: int) -> None:
        self.connection, self._sender = multiprocessing.Pipe(duplex=False)
        self._cluster, self._run = cluster, (folder, recipe, settings)

    def train(self, step: str) -> None:
        self.step, self.began = step, time.monotonic()
        messages = self._cluster.submit(train_step, self._cluster.cpus, self._run, step, num_returns="streaming")
        Thread(target=self._forward, args=(messages, RunError(f"step '{step}': {LOST}")), daemon=True).start()

    def _forward(self, messages: Any, lost: RunError) -> None:
        import ray

        try:
            for message in messages:
                self._sender.send(ray.get(message))
        except ray.exceptions.RayError:
            self._sender.send(lost)

    def stop(self) -> None:
        """It ends with Ray."""

    wait = stop


@contextlib.contextmanager
def cluster(address: str | None, cpus: int = 1) -> Iterator[Cluster]:
    """Ray at an address, or one that is started here and ends with the block; its tasks get `cpus` CPUs. Raises
    MmgenError without Ray, if nothing answers at the address, or if a task would wait for ever."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise MmgenError(f"mmgen ray needs ray; {install_extra('ray')}") from None
    try:
        if address and address != "auto" and "://" not in address:  # Ray itself would wait for minutes
            host, _, port = address.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), 10.0).close()
        ray.init(address=address or "local", log_to_driver=False, logging_level=logging.CRITICAL)
    except (ConnectionError, RuntimeError, ValueError, OSError):
        where = f"--address {address}: no Ray of this version answers" if address else "Ray could not be started"
        raise RunError(f"{where}; start one with `ray start --head`, with the same versions everywhere") from None
    try:
        machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        gpus = int(any(machine.get("GPU", 0) >= 1 for machine in machines))
        tasks = [min(machine.get("CPU", 0) // cpus, machine.get("GPU", 0) if gpus else 1e9) for machine in machines]
        if not sum(tasks):
            raise RunError(f"a task needs {cpus} CPUs (--threads){' and a GPU' * gpus}, which no machine has")
        yield Cluster(cpus, gpus, int(sum(tasks)))
    finally:
        ray.shutdown()
