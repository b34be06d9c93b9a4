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
from mmgen.progress import Bars, tell
from mmgen.recipe.tables import Recipe
from mmgen.runs.child import TRAINED
from mmgen.runs.jobs import Child, Jobs
from mmgen.storage.run_folder import RunFolder
from mmgen.training.threads import ASKED

RETRIES = 3  # of a task whose worker has ended
KNOCK_SECONDS = 10.0


@dataclass(frozen=True)
class Cluster:
    """A Ray that runs: where, and what a task gets. `slots`: tasks that can run at the same time."""

    address: str
    cpus: int
    gpus: int
    slots: int

    def submit(self, function: Callable[..., object], *arguments: object, **options: object) -> Any:
        """Start a task, in the current folder."""
        import ray

        needs = {"num_cpus": self.cpus, "num_gpus": self.gpus, "max_retries": RETRIES}
        return ray.remote(function).options(**needs, **options).remote(Path.cwd(), *arguments)

    def run_all(self, commands: Mapping[str, Sequence[str]]) -> None:
        """Run commands of mmgen, by name. Raises RunError for one that fails; the others are then cancelled."""
        import ray

        names = {self.submit(run_command, command, retry_exceptions=True): name for name, command in commands.items()}
        waiting = list(names)
        try:
            with Bars().task("ray", len(names), "commands") as advance:
                while waiting:
                    (ended,), waiting = ray.wait(waiting)
                    try:
                        status, said = ray.get(ended)
                    except ray.exceptions.RayError:
                        raise RunError(f"{names[ended]}: its worker ended {RETRIES + 1} times; {CONTINUES}") from None
                    if status:
                        raise RunError(f"{names[ended]}: {said.strip().splitlines()[-1].removeprefix('error: ')}")
                    for line in said.splitlines():
                        tell(f"{names[ended]}: {line}", err=True)
                    advance()
        finally:
            for task in waiting:
                ray.cancel(task, force=True)

    def jobs(self) -> Jobs:
        """Trains the steps of a run on the workers."""
        return Jobs(max(2, self.slots), lambda folder, recipe, only, _: RemoteChild(self, folder, recipe, only))


CONTINUES = "it may have been killed for lack of memory; run the same command again to continue"


def run_command(folder: Path, arguments: Sequence[str]) -> tuple[int, str]:
    """The task of a command: its exit status, and its lines on standard error. Raises RuntimeError if it is killed."""
    done = subprocess.run([sys.executable, "-m", "mmgen", *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode < 0:
        raise RuntimeError(f"killed by signal {-done.returncode}")
    return done.returncode, done.stderr


def train_step(
    place: Path, folder: Path, recipe: Recipe, only: Sequence[str], step: str, threads: int
) -> Iterator[object]:
    """The task of a step: the messages of its child command."""
    with contextlib.chdir(place):
        child = Child(RunFolder(folder), recipe, only, dict.fromkeys(ASKED, str(threads)))
        try:
            child.train(step)
            message: object = step
            while message is not TRAINED:
                message = child.receive()
                yield message
        except MmgenError as error:
            yield error
        finally:
            child.stop()
            child.wait()


class RemoteChild(Child):
    """A child command on a worker, a new one for each step. A thread hands its messages on."""

    def __init__(self, cluster: Cluster, folder: RunFolder, recipe: Recipe, only: Sequence[str]) -> None:
        self.connection, self._sender = multiprocessing.Pipe(duplex=False)
        self._cluster, self._run, self._messages = cluster, (folder.path, recipe, tuple(only)), None

    def train(self, step: str) -> None:
        self.step, self.began = step, time.monotonic()
        self._messages = self._cluster.submit(train_step, *self._run, step, self._cluster.cpus, num_returns="streaming")
        Thread(target=self._forward, args=(self._messages,), daemon=True).start()

    def _forward(self, messages: Any) -> None:
        import ray

        with contextlib.suppress(OSError):  # the run has ended
            try:
                for message in messages:
                    self._sender.send(ray.get(message))
            except ray.exceptions.RayError:
                lost = f"step '{self.step}': its worker ended {RETRIES + 1} times; {CONTINUES}"
                self._sender.send(RunError(lost))

    def stop(self) -> None:
        import ray

        if self._messages is not None:
            with contextlib.suppress(ray.exceptions.RayError):
                ray.cancel(self._messages, force=True)
        self.connection.close()

    def wait(self) -> None:
        """The worker's child ends soon, by itself."""


def check_installed() -> None:
    """Raises MmgenError without Ray."""
    if importlib.util.find_spec("ray") is None:
        raise MmgenError(f"mmgen ray needs ray; {install_extra('ray')}")


def room(machines: Sequence[Mapping[str, float]], cpus: int) -> tuple[int, int]:
    """The GPUs of a task (1 where a machine has GPUs), and how many tasks of `cpus` CPUs can run at the same time on
    machines with these resources. Raises RunError if none can: it would wait for ever."""
    gpus = int(any(machine.get("GPU", 0) >= 1 for machine in machines))
    tasks = [
        min(int(machine.get("CPU", 0)) // cpus, int(machine.get("GPU", 0)) if gpus else 1 << 20) for machine in machines
    ]
    if not sum(tasks):
        most = max((int(machine.get("CPU", 0)) for machine in machines), default=0)
        needs = f"{cpus} CPUs (--threads){' and a GPU' * gpus}"
        raise RunError(f"no machine of the cluster has {needs}, which a task needs; the largest has {most} CPUs")
    return gpus, sum(tasks)


@contextlib.contextmanager
def cluster(address: str | None, slots: int | None, cpus: int = 1) -> Iterator[Cluster]:
    """Ray at an address, or one that is started here with `slots` CPUs, by default one for each core, and ends with
    the block. Raises RunError if nothing answers at the address, or if no machine has room for a task."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    host, colon, port = (address or "").rpartition(":")
    try:
        if colon and "://" not in host and port.isdecimal():  # Ray itself would wait for minutes
            socket.create_connection((host.strip("[]"), int(port)), KNOCK_SECONDS).close()
        settings: Mapping[str, Any] = {} if address else {"num_cpus": slots, "include_dashboard": False}
        ray.init(address=address or "local", log_to_driver=False, logging_level=logging.CRITICAL, **settings)
    except (ConnectionError, RuntimeError, ValueError, OSError):
        where = f"--address {address}: no Ray of this version answers" if address else "Ray could not be started"
        how = "start one with `ray start --head`, and the same versions of Python and Ray on every machine"
        raise RunError(f"{where}; {how}") from None
    try:
        gpus, count = room([node["Resources"] for node in ray.nodes() if node["Alive"]], cpus)
        yield Cluster(ray.get_runtime_context().gcs_address, cpus, gpus, count)
    finally:
        ray.shutdown()
