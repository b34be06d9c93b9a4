"""The trial of several processes that train together: every case starts two or three, which end in one of `WAYS`.

A process group that is not destroyed may abort its process while Python ends ("terminate called without an active
exception"), in about one of forty starts. So processes end as Python ends. They are forked from a process that has
imported everything (`tests/kit/forked.py`); the last collection of garbage leaves out what they share with it, since
it takes a second for each. All must end in time, with the expected exit status, and leave no process and no port."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kit import forked

from . import forks
from .piece import Case, Outcome

TRIES, COUNT = "starts", 200
KEEPS = False
ROOT = Path(__file__).resolve().parents[2]
WAYS = ("end", "error", "one error", "Ctrl-C", "one kill")
LEFT = 3  # the exit status of a process that was stopped and left in order; `rendezvous.leave` gives 1 where it hangs
SECONDS = 120.0  # a start that takes longer hangs
SCRIPT = """
    import atexit, gc, sys
    atexit.unregister(gc.unfreeze)
    from tools.trials.processes import work
    work(*sys.argv[1:])
"""


def cycle() -> list[str]:
    return [f"{way}, {processes} processes" for processes in (2, 3) for way in WAYS]


@contextmanager
def opened(seed: int, folder: Path) -> Iterator[Case]:
    """Cases take the ways in turn, with two and three processes."""
    place = folder / "case"

    def case(number: int) -> Outcome:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        way, processes = WAYS[number % len(WAYS)], 2 + number // len(WAYS) % 2
        return Outcome(f"{way}, {processes} processes", 1, tuple(start(way, processes, place)))

    try:
        yield case
    finally:
        forked.stop()


def start(way: str, count: int, folder: Path) -> list[str]:
    """Start processes, and wait until all have ended: what went wrong."""
    with forked.reserved_port() as port:  # nobody else is given it meanwhile
        shared = {"WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        processes = []
        for rank in range(count):
            variables = {name: str(value) for name, value in {**shared, "RANK": rank, "LOCAL_RANK": rank}.items()}
            last, variables["PYTHONPATH"] = "last" if rank == count - 1 else "", str(ROOT)
            processes.append(forked.start(SCRIPT, way, last, folder=folder, clear=True, **variables))
        wrong = _end_in_time(processes)
        endings = [process.finish() for process in processes]
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                wrong.append(f"port {port} is left over")
    statuses, expectations = (
        [ending.returncode for ending in endings],
        [expected(way, rank, count) for rank in range(count)],
    )
    if statuses != expectations:
        output = " / ".join(ending.stderr[-200:].strip() for ending in endings)
        wrong.append(f"exit statuses {statuses} instead of {expectations}: {output}")
    return wrong + [f"process {pid} is left over" for pid in forks.survivors(folder)]


def _end_in_time(processes: Sequence[forked.Process]) -> list[str]:
    """Wait until all have ended; those that hang are killed, and said once."""
    until = time.monotonic() + SECONDS
    while not all(process.ended() for process in processes):
        if time.monotonic() > until:
            for process in processes:
                if not process.ended():
                    os.kill(process.pid, signal.SIGKILL)
            return [f"hangs for over {SECONDS:g} seconds"]
        time.sleep(0.01)
    return []


def expected(way: str, rank: int, processes: int) -> int:
    """The exit status of a process that ends in order, as `os.waitstatus_to_exitcode` returns it."""
    if way == "one kill" and rank == processes - 1:
        return -signal.SIGKILL
    return 0 if way == "end" else LEFT


def work(way: str, last: str) -> None:
    """The work of one process: updates in which all processes take part, then an end of kind `way`. `last`: not empty
    in the last process."""
    from kit import toys

    from mmgen.data.sources import Source
    from mmgen.errors import RunError
    from mmgen.recipe.tables import Step, Training
    from mmgen.training import distributed
    from mmgen.training.train import train

    training = Training(batch_size=12, micro_batch_size=6, epochs=1, num_workers=0)
    step = Step(inputs=("caption",), train=("backbone",), training=training)
    accelerator = distributed.start()
    try:
        with distributed.peer_failures(accelerator):
            context = toys.context(Path(), step, accelerator=accelerator)
            train(toys.model(), context, [Source(toys.examples(12))])
            time.sleep(random.uniform(0, 0.05))  # not all processes end at the same moment
            if way == "error" or (way == "one error" and last):
                raise RunError("as intended")
            if way == "one kill" and last:
                os.kill(os.getpid(), signal.SIGKILL)
            if way == "Ctrl-C":
                raise KeyboardInterrupt
            accelerator.wait_for_everyone()
    except (RunError, KeyboardInterrupt):
        sys.exit(LEFT)
