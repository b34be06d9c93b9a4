"""Runs a Python module in a separate process for a limited time, and reports how it ended.

The stand-in forks instead of starting an interpreter, so that imports are not repeated."""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .checkout import ROOT
from .journal import DONE, FAILED, STOPPED

GRACE = 30.0  # seconds from SIGTERM to SIGKILL; a run writes its checkpoint meanwhile
LOOK = 0.05


@dataclass(frozen=True)
class Ended:
    """How a process ended. state: done, failed or stopped; why: empty if it is done."""

    state: str
    why: str
    seconds: float


def launch(arguments: Sequence[str], out: Path, log: Path, limit: float, forked: bool = False) -> Ended:
    """`python ARGUMENTS`, `-m MODULE ...`, with stdout in `out` and stderr in `log`. A Ctrl-C ends it too, and is
    raised again."""
    began = time.monotonic()
    with out.open("wb") as stdout, log.open("wb") as stderr:
        start = _forked if forked else _started
        pid, poll = start(arguments, stdout.fileno(), stderr.fileno())
        code = None
        try:
            while (code := poll()) is None and time.monotonic() - began < limit:
                time.sleep(LOOK)
        finally:
            if code is None:
                _end(pid, poll)
    seconds = time.monotonic() - began
    if code is None:
        return Ended(STOPPED, f"stopped after {seconds:.0f} s, its limit", seconds)
    return Ended(*judged(code), seconds)


def judged(code: int) -> tuple[str, str]:
    """The state of a process that ended by itself, and the reason. A signal that this program did not send is a
    failure."""
    if code < 0:
        known = {number.value: number.name for number in signal.Signals}
        return FAILED, f"ended by {known.get(-code, f'signal {-code}')}"
    return (FAILED, f"ended with exit status {code}") if code else (DONE, "")


def _started(arguments: Sequence[str], out: int, log: int) -> tuple[int, Callable[[], int | None]]:
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=log, start_new_session=True
    )
    return process.pid, process.poll


def _forked(arguments: Sequence[str], out: int, log: int) -> tuple[int, Callable[[], int | None]]:
    sys.stdout.flush(), sys.stderr.flush()
    pid = os.fork()
    if not pid:
        os.setsid()
        os.dup2(out, 1), os.dup2(log, 2)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        os._exit(_ran(arguments))

    def poll() -> int | None:
        ended_pid, status = os.waitpid(pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if ended_pid else None

    return pid, poll


def _ran(arguments: Sequence[str]) -> int:
    """In the forked process: run the module as `python -m` would; returns the exit status."""
    code: object = 0
    try:
        os.chdir(ROOT)
        _, module, *rest = arguments
        sys.argv = [module, *rest]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as left:
        code = left.code
    except BaseException:
        traceback.print_exc()
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
    sys.stdout.flush(), sys.stderr.flush()
    return code if isinstance(code, int) else int(code is not None)


def _end(pid: int, poll: Callable[[], int | None], grace: float = GRACE) -> None:
    """Send SIGTERM to the process and its group, and after a while SIGKILL to all its descendants. torchrun's
    workers have groups of their own, and the rest of them would hold GPU memory."""
    started = offspring(pid)
    for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, GRACE)):
        with suppress(ProcessLookupError):
            os.killpg(pid, number)
        until = time.monotonic() + patience
        while time.monotonic() < until and poll() is None:
            started |= offspring(pid)
            time.sleep(LOOK)
        if poll() is not None:
            break
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # what it has left behind
    now = _running()
    for child, born in started:
        if child in now and now[child][1] == born:  # not another process, which has its number by now
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


def offspring(pid: int) -> set[tuple[int, str]]:
    """The descendants of a process: number and start time of each; none without /proc."""
    running = _running()
    processes, parents = set(), {pid}
    while parents:
        parents = {child for child, (parent, _) in running.items() if parent in parents}
        processes |= {(child, running[child][1]) for child in parents}
    return processes


def _running() -> dict[int, tuple[int, str]]:
    """All processes: the parent and the start time of each."""
    processes = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):  # it has just ended
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            processes[int(path.parent.name)] = int(fields[1]), fields[19]
    return processes
