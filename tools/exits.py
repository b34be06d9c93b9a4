"""Start several training processes again and again, and count how they exit.

    python -m tools.exits --starts 200

A process group that is not destroyed may abort its process while Python ends ("terminate called without an active
exception"), in about one of forty starts. Starts end in each of `WAYS` in turn: normally, with an error in all
processes, with an error in one, by Ctrl-C, and by a kill of one. Processes are forked from one that has built the
model and imported everything, so a start takes two seconds of CPU time. Unexpected exits are printed, and the exit
code is then 1."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import torch
from kit import toys

from mmgen.data.sources import Source
from mmgen.errors import RunError
from mmgen.model import Model
from mmgen.recipe.tables import Step, Training
from mmgen.training import distributed
from mmgen.training.train import train

WAYS = ("end", "error", "one error", "Ctrl-C", "one kill")
LEFT = 3  # the exit status of a process that was stopped and left in order; `rendezvous.leave` gives 1 where it hangs
SECONDS = 600  # a start that takes longer hangs; leaving alone has a shorter limit, `rendezvous.LEAVING_SECONDS`


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def work(way: str, rank: int, folder: Path, model: Model) -> None:
    """The work of one process: updates in which all processes take part, then an exit of kind `way`."""
    accelerator = distributed.start()
    step = Step(
        inputs=("caption",),
        train=("backbone",),
        training=Training(batch_size=12, micro_batch_size=6, epochs=1, num_workers=0),
    )
    with distributed.peer_failures(accelerator):
        train(model, toys.context(folder, step, accelerator=accelerator), [Source(toys.examples(20))])
        last = rank == accelerator.num_processes - 1
        if way == "error" or (way == "one error" and last):
            raise RunError("as asked")
        if way == "one kill" and last:
            os.kill(os.getpid(), signal.SIGKILL)
        if way == "Ctrl-C":
            raise KeyboardInterrupt
        accelerator.wait_for_everyone()


def expected(way: str, rank: int, processes: int) -> int:
    """The exit status of a process that exits in order, as `os.waitstatus_to_exitcode` returns it."""
    if way == "one kill" and rank == processes - 1:
        return -signal.SIGKILL
    return 0 if way == "end" else LEFT


def start(way: str, processes: int, folder: Path, model: Model) -> list[int]:
    """Fork the processes; returns their exit statuses. Does not return in a child."""
    port, children = free_port(), []
    for rank in range(processes):
        child = os.fork()
        if child:
            children.append(child)
            continue
        os.environ |= {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(processes),
            "LOCAL_WORLD_SIZE": str(processes),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
        try:
            work(way, rank, folder, model)
        except (RunError, KeyboardInterrupt):
            sys.exit(LEFT)
        sys.exit(0)
    until, ended = time.monotonic() + SECONDS, {}
    while len(ended) < processes:
        for child in set(children) - set(ended):
            if time.monotonic() > until:
                os.kill(child, signal.SIGKILL)
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                ended[child] = os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    return [ended[child] for child in children]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=200)
    parser.add_argument("--processes", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    good, bad = Counter(), 0
    model = toys.model()
    gc.freeze()  # what is here already need not be looked through in every process
    for number in range(options.starts):
        way = WAYS[number % len(WAYS)]
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            statuses = start(way, options.processes, Path(folder), model)
        print(f"start {number}, {way}: {time.monotonic() - began:.1f} s", flush=True)
        if statuses == [expected(way, rank, options.processes) for rank in range(options.processes)]:
            good[way] += 1
        else:
            bad += 1
            print(f"start {number}, {way}: exit statuses {statuses}", flush=True)
    print(f"{good.total()} of {options.starts} starts of {options.processes} processes ended in order: {dict(good)}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
