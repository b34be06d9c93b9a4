"""Signals that stop work: Ctrl-C (SIGINT), SIGTERM, a closed terminal (SIGHUP), a scheduler's warning (SIGUSR1)."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)


class Stopped(KeyboardInterrupt):
    """A signal asked the process to stop. (After a plain KeyboardInterrupt inside some `exec`, Python exits as if
    nobody had caught the exception.)"""


@contextlib.contextmanager
def handling(action: Callable[[], None]) -> Iterator[None]:
    """Call `action` for every signal to stop, until the end of the block. A signal that is ignored (by nohup, or a
    shell's &) stays ignored. Outside the main thread, which alone receives signals, nothing changes."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    heeded = [number for number in SIGNALS if in_main_thread and signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, lambda *_: action()) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def interruptions() -> Iterator[threading.Event]:
    """An event that the first signal sets; the second one stops at once."""
    stop = threading.Event()

    def ask() -> None:
        if stop.is_set():
            raise Stopped
        stop.set()

    with handling(ask):
        yield stop


@contextlib.contextmanager
def stop_signals_as_ctrl_c() -> Iterator[None]:
    """A signal to stop ends the block as Ctrl-C does, with `Stopped`, also if a library drops the stop or turns it into
    an error."""
    stopped = threading.Event()

    def stop() -> None:
        stopped.set()
        raise Stopped

    try:
        with handling(stop):
            yield
    finally:
        if stopped.is_set():
            raise Stopped
