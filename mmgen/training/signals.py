"""Signals: what a person or a scheduler sends to stop work, heeded in one way by the command line and by training.

Ctrl-C (SIGINT), SIGTERM, a closed terminal (SIGHUP) and a scheduler's warning (SIGUSR1, as Slurm sends it) all mean:
come to an end.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

HEEDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)


@contextlib.contextmanager
def handling(action: Callable[[], None]) -> Iterator[None]:
    """`action` is called for every signal that asks to stop, until the end of the block. A signal that is ignored (by
    nohup, or a shell's &) stays so, and outside of the main thread, which alone hears of signals, nothing changes."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    heeded = [number for number in HEEDED if in_main_thread and signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, lambda *_: action()) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def interruptions() -> Iterator[threading.Event]:
    """An event that the first signal sets; the second one stops at once."""
    asked = threading.Event()

    def ask() -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    with handling(ask):
        yield asked
