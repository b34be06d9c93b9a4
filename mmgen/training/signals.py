"""Signals: the first Ctrl-C or SIGTERM asks work to stop, the second one stops it at once."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def interruptions() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C or SIGTERM sets; the second one stops at once."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():  # only that one is told of signals
        yield asked
        return

    def on_signal(*_: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    heeded = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, on_signal) for number in heeded}  # nohup's and a shell's & stay deaf
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
