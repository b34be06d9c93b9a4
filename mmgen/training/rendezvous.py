"""Rendezvous: processes that were started together connect before they work, and disconnect in order afterwards.

Environment variables describe them, as `torchrun` and `accelerate launch` set them: WORLD_SIZE, RANK, MASTER_ADDR and
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

WAIT = "MMGEN_WAIT_SECONDS"  # environment variable: how long processes wait for each other at the start
WAIT_SECONDS = 600  # the default
SAID_AFTER = 5  # seconds of waiting before a message
LEAVING_SECONDS = 60  # limit for closing the process group, where other processes may be gone
HOW = (
    "start them together with `torchrun --nproc-per-node N -m mmgen run ...`, or run "
    "`unset WORLD_SIZE RANK LOCAL_RANK` for one"
)
log = logging.getLogger("mmgen")


def world_size() -> int:
    """The number of processes that were started together, from the environment. Raises RunError."""
    return number("WORLD_SIZE", 1)


def number(name: str, default: int, least: int = 1) -> int:
    """An environment variable that is a whole number of at least `least`. Raises RunError."""
    text = os.environ.get(name, str(default))
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise RunError(
            f"{name} is '{text[:40]}' in the environment, but must be a whole number of at least {least}; {HOW}"
        )
    return value


def meet() -> distributed.Store | None:
    """Wait until all processes are connected. Returns their store, which the first process serves, so it must be kept
    until the process group has its own; None for one process.

    Raises RunError if the environment names no address, or if some processes do not connect within WAIT_SECONDS, or
    within the seconds of the environment variable `WAIT`."""
    expected = world_size()
    number("LOCAL_RANK", -1, least=-1)  # accelerate reads it, and takes -1 for none
    if expected == 1 or distributed.is_initialized():
        return None
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        if not os.environ.get(name):
            raise RunError(f"WORLD_SIZE is {expected} in the environment, but {name} is not set; {HOW}")
    rank, seconds = number("RANK", 0, least=0), number(WAIT, WAIT_SECONDS)
    if rank >= expected:
        raise RunError(
            f"RANK is {rank} in the environment, but must be at most {expected - 1}, since WORLD_SIZE is {expected}; "
            f"{HOW}"
        )
    number("MASTER_PORT", 1)
    place = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    who = f"process {rank} of {expected}"
    arrival = _Arrival(rank, expected, timedelta(seconds=seconds))
    arrival.start()
    began, said = time.monotonic(), False
    while arrival.is_alive() and (waited := time.monotonic() - began) < seconds + SAID_AFTER:
        if not said and waited > SAID_AFTER:
            said = True
            log.warning(
                f"{who}: waiting for the other processes at {place} (WORLD_SIZE is {expected}) for at most {seconds} s"
            )
        arrival.join(0.1)  # Python handles Ctrl-C between two of these
    if arrival.error is not None or arrival.is_alive():
        raise RunError(
            f"{who}: the others did not connect to {place} within {seconds} s; {HOW}; to wait longer, set {WAIT}"
        ) from None
    return arrival.store


class _Arrival(threading.Thread):
    """Waits for the other processes in a separate thread, since Python handles no signals while torch waits."""

    def __init__(self, rank: int, expected: int, timeout: timedelta) -> None:
        super().__init__(daemon=True)
        self.store: distributed.Store | None = None
        self.rank, self.expected, self.timeout = rank, expected, timeout
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            store, _, _ = next(rendezvous("env://", timeout=self.timeout))
            store.set(f"mmgen/{self.rank}", "here")
            store.wait([f"mmgen/{rank}" for rank in range(self.expected)], self.timeout)
            self.store = store
        except Exception as error:
            self.error = error


def leave_at_exit() -> None:
    """Close the process group when Python ends, in any way. (An open group may abort its process at exit, and
    `torchrun` then reports a failed run.)"""
    atexit.unregister(leave)
    atexit.register(leave)


def leave() -> None:
    """Close the process group, if there is one. A process that waits too long for processes that are gone ends at once
    with exit code 1."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return
    faulthandler.dump_traceback_later(LEAVING_SECONDS, exit=True)
    try:
        distributed.destroy_process_group()
        gc.collect()  # its threads end with the last reference to it
    finally:
        faulthandler.cancel_dump_traceback_later()
