"""A Ray that is started or joined: commands of mmgen as its tasks, and the steps of a run in child commands on it."""

from __future__ import annotations

import contextlib
import importlib.util
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
from mmgen.runs.child import TRAINED
from mmgen.runs.jobs import Child, Jobs, threads_variables
from mmgen.storage.run_folder import RunFolder

RETRIES = 3  # of a task whose worker has ended
LOST = f"its worker ended {RETRIES + 1} times, perhaps for lack of memory; run the same command again to continue"


@dataclass(frozen=True)
class Cluster:
    """A Ray that runs: what a task gets, and how many can run at the same time (`slots`)."""

    cpus: int
    gpus: int
    slots: int

    def submit(self, function: Callable[..., object], *arguments: object, **options: object) -> Any:
        """Start a task; its first argument is the current folder."""
        import ray

        needs = {"num_cpus": self.cpus, "num_gpus": self.gpus, "max_retries": RETRIES}
        return ray.remote(function).options(**needs, **options).remote(Path.cwd(), *arguments)

    def run_all(self, commands: Mapping[str, Sequence[str]]) -> None:
        """Run commands of mmgen, by name. Raises RunError for one that fails; the others are then cancelled."""
        import ray

        tasks = {self.submit(run_command, command, retry_exceptions=True): name for name, command in commands.items()}
        progress, waiting = Bars(), list(tasks)
        try:
            with progress.task("ray", len(tasks), "commands") as advance:
                while waiting:
                    (ended,), waiting = ray.wait(waiting)
                    try:
                        status, lines = ray.get(ended)
                    except ray.exceptions.RayError:
                        raise RunError(f"{tasks[ended]}: {LOST}") from None
                    if status:
                        raise RunError(f"{tasks[ended]}: {lines[-1].removeprefix('error: ')}")
                    for line in lines:
                        progress.say(f"{tasks[ended]}: {line}")
                    advance()
        finally:
            for task in waiting:
                ray.cancel(task, force=True)

    def jobs(self) -> Jobs:
        """Trains the steps of a run on the workers."""
        return Jobs(max(2, self.slots), lambda folder, recipe, only, _: RemoteChild(self, folder, recipe, only))


def run_command(folder: Path, arguments: Sequence[str]) -> tuple[int, list[str]]:
    """The task of a command: its exit status, and its lines on standard error. Raises RuntimeError if it is killed."""
    done = subprocess.run([sys.executable, "-m", "mmgen", *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode < 0:
        raise RuntimeError(f"killed by signal {-done.returncode}")
    return done.returncode, done.stderr.strip().splitlines()


def train_step(place: Path, threads: int, run: tuple[RunFolder, Recipe, Sequence[str]], step: str) -> Iterator[object]:
    """The task of a step: the messages of its child command."""
    with contextlib.chdir(place), contextlib.closing(Child(*run, threads_variables(threads))) as child:
        child.train(step)
        try:
            for message in iter(child.receive, TRAINED):
                yield message
            yield TRAINED
        except MmgenError as error:
            yield error


class RemoteChild(Child):
    """A child command on a worker, a new one for each step. A thread hands its messages on."""

    def __init__(self, cluster: Cluster, folder: RunFolder, recipe: Recipe, only: Sequence[str]) -> None:
        self.connection, self._sender = multiprocessing.Pipe(duplex=False)
        self._cluster, self._run = cluster, (folder, recipe, tuple(only))

    def train(self, step: str) -> None:
        self.step, self.began = step, time.monotonic()
        self._task = self._cluster.submit(train_step, self._cluster.cpus, self._run, step, num_returns="streaming")
        Thread(target=self._forward, args=(self._task, f"step '{step}': {LOST}"), daemon=True).start()

    def _forward(self, messages: Any, lost: str) -> None:
        import ray

        with contextlib.suppress(OSError):  # the run has ended
            try:
                for message in messages:
                    self._sender.send(ray.get(message))
            except ray.exceptions.RayError:
                self._sender.send(RunError(lost))

    def stop(self) -> None:
        import ray

        ray.cancel(self._task, force=True)
        self.connection.close()

    def wait(self) -> None:
        """Does not wait: the worker ends, and its child after the current update."""


@contextlib.contextmanager
def cluster(address: str | None, slots: int | None, cpus: int = 1) -> Iterator[Cluster]:
    """Ray at an address, or one that is started here with `slots` CPUs, by default one for each core, and ends with
    the block. Raises MmgenError without Ray, if nothing answers at the address, or if a task would wait for ever."""
    if importlib.util.find_spec("ray") is None:
        raise MmgenError(f"mmgen ray needs ray; {install_extra('ray')}")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    host, colon, port = (address or "").rpartition(":")
    settings: Mapping[str, Any] = {} if address else {"num_cpus": slots, "include_dashboard": False}
    try:
        if colon and "://" not in host and port.isdecimal():  # Ray itself would wait for minutes
            socket.create_connection((host.strip("[]"), int(port)), 10.0).close()
        ray.init(address=address or "local", log_to_driver=False, logging_level=logging.CRITICAL, **settings)
    except (ConnectionError, RuntimeError, ValueError, OSError):
        where = f"--address {address}: no Ray of this version answers" if address else "Ray could not be started"
        how = "start one with `ray start --head`, and the same versions of Python and Ray on every machine"
        raise RunError(f"{where}; {how}") from None
    try:
        machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        gpus = int(any(machine.get("GPU", 0) >= 1 for machine in machines))
        tasks = [min(machine.get("CPU", 0) // cpus, machine.get("GPU", 0) if gpus else 1e9) for machine in machines]
        if not (count := int(sum(tasks))):
            needs = f"{cpus} CPUs (--threads){' and a GPU' * gpus}"
            raise RunError(f"no machine of the cluster has {needs}, which a task needs")
        yield Cluster(cpus, gpus, count)
    finally:
        ray.shutdown()
