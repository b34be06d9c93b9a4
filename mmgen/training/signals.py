"""Signals that stop work, handled in the same way by the command line and by training.

Ctrl-C (SIGINT), SIGTERM, a closed terminal (SIGHUP) and a scheduler's warning (SIGUSR1, as Slurm sends it) all stop the
work. A stop must not be lost, although Python drops an exception that is raised in a finaliser or a callback.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
MOMENT = 0.01  # seconds, until an action is called again


@contextlib.contextmanager
def handling(action: Callable[[], None]) -> Iterator[None]:
    """Call `action` for every signal to stop, until the end of the block. A signal that is ignored (by nohup, or a
    shell's &) stays ignored. Outside the main thread, which alone receives signals, nothing changes. If Python drops a
    KeyboardInterrupt of `action`, `action` is called again a moment later, by a timer."""
    if not _in_main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        action()

    def call_again(dropped: sys.UnraisableHookArgs) -> None:
        if isinstance(dropped.exc_value, KeyboardInterrupt) and _in_main_thread():
            alarm = signal.signal(signal.SIGALRM, handle)
            before.setdefault(signal.SIGALRM, alarm)
            signal.setitimer(signal.ITIMER_REAL, MOMENT)
        else:
            report(dropped)

    heeded = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in heeded}
    report, sys.unraisablehook = sys.unraisablehook, call_again
    try:
        yield
    finally:
        sys.unraisablehook = report
        if signal.SIGALRM in before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextlib.contextmanager
def interruptions() -> Iterator[threading.Event]:
    """An event that the first signal sets; the second one stops at once."""
    stop = threading.Event()

    def ask() -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    with handling(ask):
        yield stop


class Stopped(KeyboardInterrupt):
    """A signal asked the process to stop. (After a plain KeyboardInterrupt inside some `exec`, Python exits as if
    nobody had caught the exception.)"""


@contextlib.contextmanager
def stop_signals_as_ctrl_c() -> Iterator[None]:
    """A signal to stop ends the block as Ctrl-C does, with `Stopped`, even if a library turns the stop into an error or
    drops it."""
    stop_requested = threading.Event()

    def stop() -> None:
        stop_requested.set()
        raise Stopped

    try:
        with handling(stop):
            yield
    except Exception as error:
        if not stop_requested.is_set():
            raise
        raise Stopped from error  # a library that is being imported may turn the stop into an error of the library
    if stop_requested.is_set():
        raise Stopped  # a library has dropped the stop
