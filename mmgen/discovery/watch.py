"""Strangers' code while it is imported or called: it cannot end the process or keep it from ending, move the working
folder or take Ctrl-C away, and a person reads whose it is when it sleeps, crashes or leaves a thread behind."""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator

SAID_AFTER = 3.0  # seconds until a person is told what is waited for
log = logging.getLogger("mmgen")


@contextlib.contextmanager
def watched(whose: str) -> Iterator[None]:
    """Runs a stranger's code; `whose`: what it is called, for people. What the code prints goes to stderr.

    Raises what the code raises, but ImportError where it raises KeyboardInterrupt though nobody has pressed Ctrl-C, and
    SystemExit where it calls `os._exit`."""
    folder = _folder()
    with (
        contextlib.redirect_stdout(sys.stderr),
        _said(whose),
        _traced(),
        _no_exit(),
        _no_waiting(whose),
        _interrupts() as pressed,
    ):
        try:
            yield
        except KeyboardInterrupt as error:
            if pressed.is_set() or type(error) is not KeyboardInterrupt:  # a signal's are of a class of their own
                raise
            raise ImportError("it raised KeyboardInterrupt, and nobody has pressed Ctrl-C") from None
        finally:
            if folder and folder != (moved := _folder()):
                os.chdir(folder)
                log.warning(f"{whose} went to the folder {moved} while it was loaded; mmgen stays in {folder}")


def trace_crashes() -> bool:
    """A crash (a segmentation fault, say) prints where it was, on stderr. Returns whether this has begun now."""
    if faulthandler.is_enabled():
        return False
    with contextlib.suppress(OSError, RuntimeError, AttributeError):  # stderr is no file of the system's
        faulthandler.enable()
    return faulthandler.is_enabled()


def _folder() -> str:
    """The working folder; empty where it is gone."""
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:
        return ""


@contextlib.contextmanager
def _said(whose: str) -> Iterator[None]:
    """After some seconds a line says what is being loaded."""
    timer = threading.Timer(SAID_AFTER, lambda: print(f"loading {whose} ...", file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextlib.contextmanager
def _traced() -> Iterator[None]:
    begun = trace_crashes()
    try:
        yield
    finally:
        if begun:
            faulthandler.disable()


@contextlib.contextmanager
def _no_exit() -> Iterator[None]:
    """`os._exit` is an error. Nothing else can tell who has called it: the process would be gone without a word."""
    leave, process = os._exit, os.getpid()

    def refused(status: int) -> None:
        if os.getpid() != process:  # a child that the code has forked may end
            leave(status)
        raise SystemExit(f"it called os._exit({status})")

    os._exit = refused  # type: ignore[assignment]
    try:
        yield
    finally:
        os._exit = leave


@contextlib.contextmanager
def _no_waiting(whose: str) -> Iterator[None]:
    """Threads that the code begins are daemons. For any other Python waits at its end, however long that takes."""
    start, own = threading.Thread.start, threading.current_thread()
    begun: list[threading.Thread] = []

    def started(thread: threading.Thread) -> None:
        if not thread.daemon and thread.ident is None and threading.current_thread() in (own, *begun):
            thread.daemon = True
            begun.append(thread)
        start(thread)

    threading.Thread.start = started  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        threading.Thread.start = start  # type: ignore[method-assign]
        for left in begun:
            if left.is_alive():
                log.warning(f"{whose} has left a thread ('{left.name}'); it is stopped when mmgen ends")


@contextlib.contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets, besides what it does already. A handler that the code sets does not stay."""
    pressed, before = threading.Event(), signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield pressed
        return

    def heard(number, frame):
        pressed.set()
        return before(number, frame)

    signal.signal(signal.SIGINT, heard)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
