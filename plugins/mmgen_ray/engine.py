"""Ray as an engine: started or joined, tasks with retries, their results and errors, one display of their progress."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mmgen.errors import MmgenError, RunError, install_extra
from mmgen.progress import Advance, Bars

RETRIES = 3  # of a task whose worker has ended
POLL = 0.5  # seconds
KNOCK_SECONDS = 10.0
SHARDS_PER_SLOT = 4  # so that slots are busy to the end although shards differ in length


@dataclass(frozen=True)
class Failure:
    """The result of a task that a person's mistake has ended."""

    message: str


class Board:
    """An actor that collects what tasks report: counts by task, and lines."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.lines: list[str] = []

    def count(self, task: str, done: int) -> None:
        self.counts[task] = done

    def say(self, text: str) -> None:
        self.lines.append(text)

    def take(self) -> tuple[int, list[str]]:
        """The sum of all counts, and the lines since the last call."""
        lines, self.lines = self.lines, []
        return sum(self.counts.values()), lines


class Reports(Bars):
    """The progress of a task: its first count, and with `speaks` its lines, go to the board."""

    def __init__(self, board: Any, task: str, speaks: bool = False) -> None:
        super().__init__()
        self.board, self.name, self.speaks, self.counted = board, task, speaks, False

    @contextlib.contextmanager
    def task(self, label: str, total: int | None, unit: str = "", done: int = 0) -> Iterator[Advance]:
        if self.speaks:
            with super()._lines(label, total, unit, done) as advance:
                yield advance
            return
        counts, self.counted, posted = not self.counted, True, 0.0

        def advance_board(steps: int = 1, text: str = "") -> None:
            nonlocal done, posted
            done += steps
            if counts and time.monotonic() - posted > POLL:
                posted = time.monotonic()
                self.board.count.remote(self.name, done)

        yield advance_board
        if counts:
            self.board.count.remote(self.name, done)

    def say(self, text: str) -> None:
        if self.speaks:
            self.board.say.remote(f"{self.name}: {text}")


@dataclass(frozen=True)
class Engine:
    """A Ray that has been started or joined.

    cpus   of a task
    gpus   of a task: 1 where the cluster has GPUs
    slots  tasks that can run at the same time
    board  gets the reports of tasks
    """

    cpus: int
    gpus: int
    slots: int
    board: Any = field(repr=False)

    def submit(self, function: Callable[..., object], *arguments: object, waits: bool = False) -> Any:
        """Start a task. `waits`: whether the task only waits for others, and needs no slot."""
        import ray

        needs = {"num_cpus": 0} if waits else {"num_cpus": self.cpus, "num_gpus": self.gpus}
        options: Mapping[str, Any] = {**needs, "max_retries": RETRIES, "retry_exceptions": False}
        return ray.remote(_with_errors_as_results).options(**options).remote(function, arguments)

    def results(self, tasks: Mapping[Any, str], timeout: float | None = None) -> dict[str, Any]:
        """The results of the tasks that have ended, by name. Raises RunError for a task that has failed."""
        import ray

        ended, _ = ray.wait(list(tasks), num_returns=len(tasks), timeout=timeout)
        return {tasks[task]: result_of(task, tasks[task]) for task in ended}

    def run_all(self, tasks: Mapping[Any, str], label: str, unit: str, counted: str) -> dict[str, Any]:
        """The results of all tasks by name, with one display. `counted`: what the tasks count."""
        import ray

        results: dict[str, Any] = {}
        progress = Bars()
        try:
            with progress.task(label, len(tasks), unit) as advance:
                while len(results) < len(tasks):
                    pending = {task: name for task, name in tasks.items() if name not in results}
                    ended = self.results(pending, POLL)
                    count, lines = ray.get(self.board.take.remote())
                    for line in lines:
                        progress.say(line)
                    results |= ended
                    advance(len(ended), f"{count} {counted}" if counted else "")
        finally:
            for task, name in tasks.items():
                if name not in results:
                    ray.cancel(task, force=True)
        return results


def _with_errors_as_results(function: Callable[..., object], arguments: Sequence[object]) -> object:
    """What a worker does. The user's mistakes are results, since Ray would wrap them in a traceback."""
    logging.getLogger("mmgen").setLevel(logging.WARNING)
    try:
        return function(*arguments)
    except (MmgenError, OSError) as error:
        return Failure(str(error))


def result_of(task: Any, name: str) -> Any:
    """The result of a task that has ended. Raises RunError if it failed."""
    import ray

    try:
        result = ray.get(task)
    except (ray.exceptions.RayError, ray.exceptions.RaySystemError) as error:
        if isinstance(error, ray.exceptions.RayTaskError):  # a bug, with its traceback
            raise
        raise RunError(
            f"{name}: its worker ended {RETRIES + 1} times; it may have been killed for lack of memory; run the same "
            "command again to continue"
        ) from None
    if isinstance(result, Failure):
        raise RunError(result.message)
    return result


def check_installed() -> None:
    """Raises MmgenError without Ray."""
    if importlib.util.find_spec("ray") is None:
        raise MmgenError(f"mmgen ray needs ray; {install_extra('ray')}")


def _check_listening(address: str) -> None:
    """Raises OSError if nothing listens at host:port, for which Ray itself would wait for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and "://" not in address and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), KNOCK_SECONDS).close()


def room(machines: Sequence[Mapping[str, float]], cpus: int) -> tuple[int, int]:
    """The GPUs of a task (1 where a machine has GPUs), and how many tasks of `cpus` CPUs can run at the same time on
    machines with these resources. Raises RunError if none can: it would wait for ever."""
    gpus = int(any(machine.get("GPU", 0) >= 1 for machine in machines))
    tasks = [int(machine.get("CPU", 0)) // cpus for machine in machines]
    if gpus:
        tasks = [min(count, int(machine.get("GPU", 0))) for count, machine in zip(tasks, machines, strict=True)]
    if not sum(tasks):
        most = max((int(machine.get("CPU", 0)) for machine in machines), default=0)
        needs = f"{cpus} CPUs (--threads){' and a GPU' * gpus}"
        raise RunError(f"no machine of the cluster has {needs}, which a task needs; the largest has {most} CPUs")
    return gpus, sum(tasks)


@contextlib.contextmanager
def engine(address: str | None, slots: int | None, cpus: int = 1) -> Iterator[Engine]:
    """Ray at an address, or one that is started here with `slots` CPUs, by default one for each core, and ends with
    the block. Raises RunError if nothing answers at the address, or if no machine has room for a task."""
    check_installed()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    quiet: Mapping[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    try:
        if address is None:
            ray.init(address="local", num_cpus=slots, include_dashboard=False, **quiet)
        else:
            _check_listening(address)
            ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ValueError, OSError):
        if address is None:
            raise RunError("Ray could not be started; `ray start --head` says why") from None
        raise RunError(
            f"--address {address}: no Ray of this version answers; start one with `ray start --head`, and the same "
            "versions of Python and Ray on every machine"
        ) from None
    try:
        gpus, count = room([node["Resources"] for node in ray.nodes() if node["Alive"]], cpus)
        board = ray.remote(Board).options(num_cpus=0).remote()
        yield Engine(cpus, gpus, count, board)
    finally:
        ray.shutdown()
