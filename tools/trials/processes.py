"""The trial of several processes that train together: every case starts two or three, which end in one of `WAYS`, after
the training or inside it: as a process loads a micro-batch or computes its loss.

A process group that is not destroyed may abort its process while Python ends ("terminate called without an active
exception"), in about one of forty starts. So processes end as Python ends. They are forked from a process that has
imported everything (`tests/kit/forked.py`); the last collection of garbage leaves out what they share with it, since
it takes a second for each. All must end in time, with the expected exit status, print nothing unexpected on stderr,
and leave no process, no port and no temporary file; those that end as intended have the same finite weights."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kit import forked

from . import folders, forks
from .piece import Case, Outcome

TRIES, COUNT = "starts", 200
KEEPS = False
ROOT = Path(__file__).resolve().parents[2]
WAYS = ("end", "error", "one error", "Ctrl-C", "one kill")
LEFT = 3  # the exit status of a process that was stopped and left in order; `rendezvous.leave` gives 1 where it hangs
MOMENTS = ("after the training", "loading", "computing a loss")
CALLS = 8  # of loading and of computing in the training, at least, in each process
ALLOWED = "resumes from the last checkpoint"  # ends the line of a process that has waited for one that has ended
SECONDS = 120.0  # a start that takes longer hangs
SCRIPT = """
    import atexit, gc, sys, tempfile
    atexit.unregister(gc.unfreeze)
    tempfile.tempdir = None  # the one of the process that this one was forked from
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
        for path in (place, Path(f"{place}.tmp")):
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir()
        way, processes = WAYS[number % len(WAYS)], 2 + number // len(WAYS) % 2
        draw = random.Random(f"{seed}/{number}")
        moment = draw.choice(MOMENTS) if way != "end" else MOMENTS[0]
        wrong = start(way, processes, place, moment, draw)
        return Outcome(f"{way}, {processes} processes", 1, tuple(wrong), phases={moment: 1})

    try:
        yield case
    finally:
        forked.stop()


def start(way: str, count: int, folder: Path, moment: str, draw: random.Random) -> list[str]:
    """Start processes, and wait until all have ended: what went wrong. Temporary files go to `<folder>.tmp`."""
    call, temporary = draw.randint(1, CALLS), Path(f"{folder}.tmp")
    with forked.reserved_port() as port:  # nobody else is given it meanwhile
        shared = {"WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        processes = []
        for rank in range(count):
            variables = {name: str(value) for name, value in {**shared, "RANK": rank, "LOCAL_RANK": rank}.items()}
            variables |= {"PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
            last, delay = "last" if rank == count - 1 else "", str(draw.uniform(0, 0.05))
            arguments = (way, last, moment, str(call), delay)
            processes.append(forked.start(SCRIPT, *arguments, folder=folder, clear=True, **variables))
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
    for rank, ending in enumerate(endings):
        wrong += [f"process {rank}, {text}" for text in forks.complaints(ending.stderr, allowed=ALLOWED)]
    if way == "end" and statuses == expectations:
        wrong += _different_weights([ending.stdout.strip() for ending in endings])
    wrong += folders.torn(folder)
    wrong += [f"{name} is left over" for name in folders.files(folder) if folders.is_temporary(name)]
    if way != "one kill":  # a killed process leaves its temporary files
        wrong += [f"{name} is left over among temporary files" for name in folders.files(temporary)]
    return wrong + [f"process {pid} is left over" for pid in forks.survivors(folder)]


def _different_weights(weights: list[str]) -> list[str]:
    """What is wrong with the weights of the processes: the checksum of each, and whether they are finite."""
    if len({*weights}) > 1 or not weights[0].endswith(" finite"):
        return [f"the processes have the weights {weights}"]
    return []


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


def work(way: str, last: str, moment: str, call: str, delay: str) -> None:
    """The work of one process: updates in which all processes take part, and an end of kind `way` after them, or inside
    the call number `call` of what `moment` names. `last`: not empty in the last process. `delay`: seconds before an end
    after the training, since not all processes end at the same moment."""
    import torch
    from kit import toys

    from mmgen.data.loader import MicroBatches
    from mmgen.data.sources import Source
    from mmgen.errors import RunError
    from mmgen.recipe.tables import Step, Training
    from mmgen.storage.weights import module_checksum
    from mmgen.training import distributed
    from mmgen.training.learner import Learner
    from mmgen.training.train import train

    def end() -> None:
        if way == "error" or (way == "one error" and last):
            raise RunError(f"as intended; it {ALLOWED}")
        if way == "one kill" and last:
            os.kill(os.getpid(), signal.SIGKILL)
        if way == "Ctrl-C":
            os.kill(os.getpid(), signal.SIGINT)

    if moment == "loading":
        _before_call(int(call), MicroBatches, "__getitem__", end)
    elif moment == "computing a loss":
        _before_call(int(call), Learner, "loss", end)
    training = Training(batch_size=12, micro_batch_size=2, epochs=4, num_workers=0)
    step = Step(inputs=("caption",), train=("backbone",), training=training)
    accelerator = distributed.start()
    try:
        with distributed.peer_failures(accelerator):
            context, model = toys.context(Path(), step, accelerator=accelerator), toys.model()
            train(model, context, [Source(toys.examples(12))])
            time.sleep(float(delay))
            end()
            accelerator.wait_for_everyone()
            finite = all(torch.isfinite(parameter).all() for parameter in model.parameters())
            print(module_checksum(model), "finite" if finite else "nan")
    except RunError as error:
        print(error, file=sys.stderr)
        sys.exit(LEFT)
    except KeyboardInterrupt:
        sys.exit(LEFT)


def _before_call(number: int, cls: type, method: str, end: Callable[[], None]) -> None:
    """Have `end` called before this call of a method, counted from 1."""
    original, calls = getattr(cls, method), itertools.count(1)

    def counted(*arguments: Any, **options: Any) -> Any:
        if next(calls) == number:
            end()
        return original(*arguments, **options)

    setattr(cls, method, counted)
