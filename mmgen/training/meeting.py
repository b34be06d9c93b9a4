"""Meeting: processes that were started together find each other before they work, and leave in order afterwards.

They are described by the environment, as `torchrun` and `accelerate launch` fill it: WORLD_SIZE, RANK, MASTER_ADDR and
MASTER_PORT.
"""

from __future__ import annotations

import atexit
import faulthandler
import gc
import logging
import os
import threading
import time
from datetime import timedelta

from torch import distributed
from torch.distributed.rendezvous import rendezvous

from ..errors import RunError

WAIT = "MMGEN_WAIT_SECONDS"  # in the environment: how long processes wait for each other when they start
WAIT_SECONDS = 600  # where it says nothing
SAID_AFTER = 5  # seconds of waiting until a person is told
LEAVING_SECONDS = 60  # how long taking down the process group may take, where others may be gone
HOW = (
    "start them together with `torchrun --nproc-per-node N -m mmgen run ...`, or run "
    "`unset WORLD_SIZE RANK LOCAL_RANK` for one"
)
log = logging.getLogger("mmgen")


def world_size() -> int:
    """How many processes were started together, by the environment. Raises RunError for what is no number."""
    return number("WORLD_SIZE", 1)


def number(name: str, default: int, least: int = 1) -> int:
    """A whole number in the environment. Raises RunError."""
    text = os.environ.get(name, str(default))
    try:
        found = int(text)
    except ValueError:
        found = least - 1
    if found < least:
        raise RunError(f"{name} is '{text[:40]}' in the environment, and not a number from {least} on; {HOW}")
    return found


def meet() -> distributed.Store | None:
    """Wait until all processes are there. Returns where they have met: the first process serves it, so it is kept until
    the process group has a place of its own; None for one process.

    Raises RunError when the environment does not say where, or when some do not come: after WAIT_SECONDS, or as many as
    the environment says under `WAIT`."""
    wanted = world_size()
    number("LOCAL_RANK", -1, least=-1)  # accelerate reads it, and takes -1 for none
    if wanted == 1 or distributed.is_initialized():
        return None
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        if not os.environ.get(name):
            raise RunError(f"WORLD_SIZE is {wanted} in the environment, but {name} is not set; {HOW}")
    rank, seconds = number("RANK", 0, least=0), number(WAIT, WAIT_SECONDS)
    if rank >= wanted:
        raise RunError(
            f"RANK is {rank} in the environment, and WORLD_SIZE {wanted}, so it is {wanted - 1} at most; {HOW}"
        )
    number("MASTER_PORT", 1)
    place = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    who = f"process {rank} of {wanted}"
    arrival = _Arrival(rank, wanted, timedelta(seconds=seconds))
    arrival.start()
    began, said = time.monotonic(), False
    while arrival.is_alive() and (waited := time.monotonic() - began) < seconds + SAID_AFTER:
        if not said and waited > SAID_AFTER:
            said = True
            log.warning(f"{who}: waiting for the others at {place} (WORLD_SIZE is {wanted}), {seconds} s at most")
        arrival.join(0.1)  # Python hears of Ctrl-C between two of these
    if arrival.error is not None or arrival.is_alive():
        raise RunError(
            f"{who}: the others did not come to {place} within {seconds} s; {HOW}; to wait longer, set {WAIT}"
        ) from None
    return arrival.store


class _Arrival(threading.Thread):
    """Waits for the others, in a thread of its own: Python does not hear of signals while torch waits."""

    def __init__(self, rank: int, wanted: int, timeout: timedelta) -> None:
        super().__init__(daemon=True)
        self.store: distributed.Store | None = None
        self.rank, self.wanted, self.timeout = rank, wanted, timeout
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            store, _, _ = next(rendezvous("env://", timeout=self.timeout))
            store.set(f"mmgen/{self.rank}", "here")
            store.wait([f"mmgen/{rank}" for rank in range(self.wanted)], self.timeout)
            self.store = store
        except Exception as error:
            self.error = error


def leave_at_exit() -> None:
    """However Python ends from here on, the process group is taken down first. (One that is not may abort its process
    on the way out, and `torchrun` then calls the run failed.)"""
    atexit.unregister(leave)
    atexit.register(leave)


def leave() -> None:
    """Take down the process group, where there is one. A process that waits too long for others that are gone ends at
    once, with exit code 1."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return
    faulthandler.dump_traceback_later(LEAVING_SECONDS, exit=True)
    try:
        distributed.destroy_process_group()
        gc.collect()  # its threads end with the last reference to it
    finally:
        faulthandler.cancel_dump_traceback_later()
