"""Forks of this process, which has everything imported: work that is killed, and work that is done to its end."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from mmgen.errors import MmgenError

LIMIT = 600.0  # seconds; work that takes longer hangs, on a busy machine too
FILE_CALLS = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.chmod", "shutil.rmtree")
PR_SET_PDEATHSIG = 1  # of prctl(2), on Linux
FAILED, MISTAKE = 1, 2  # exit status: of an error that mmgen reports, and of any other exception


@dataclass(frozen=True)
class Ending:
    """How work ended. `status`: as of `os.waitstatus_to_exitcode`; `output`: what it printed; `errors`: the part of it
    on stderr."""

    status: int
    seconds: float
    output: str
    errors: str = ""

    @property
    def killed(self) -> bool:
        return self.status == -signal.SIGKILL


class Fork:
    """A process that does `work` in `folder`, with the output in `<folder>.log`, what it and the processes that it
    starts print on stderr in `<folder>.err`, and temporary files in `<folder>.tmp`.

    kill_before  the process kills itself before this call of the file system, counted from 1; 0: it does not
    """

    def __init__(self, work: Callable[[], object], folder: Path, kill_before: int = 0) -> None:
        self.folder, self.log, self.temporary = folder, Path(f"{folder}.log"), Path(f"{folder}.tmp")
        self.errors = Path(f"{folder}.err")
        self.temporary.mkdir(exist_ok=True)
        reading, writing = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(reading)
            self._work(work, writing, kill_before)
        os.close(writing)
        os.read(reading, 1)  # it begins to work, or has ended
        os.close(reading)
        self.began = time.monotonic()

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        os.kill(self.pid, how)

    def ended(self) -> bool:
        """Whether it has; it stays until `wait`."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def wait(self, limit: float = LIMIT) -> Ending:
        """Wait for the end; after `limit` seconds, kill it, and say so in the output."""
        until, note = self.began + limit, ""
        while not self.ended():
            if time.monotonic() > until:
                self.kill()
                note = f"killed after {limit:g} seconds"
                break
            time.sleep(0.0005)
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        seconds = time.monotonic() - self.began
        output, errors = (file.read_text(errors="replace") for file in (self.log, self.errors))
        return Ending(MISTAKE if note else status, seconds, output + errors + note, errors)

    def complaints(self, usual: str, allowed: str = "") -> list[str]:
        """As `complaints`, of all that was printed on stderr, also by processes that have outlived this one."""
        return complaints(self.errors.read_text(errors="replace"), usual, allowed)

    def _work(self, work: Callable[[], object], writing: int, kill_before: int) -> None:
        """The process. It ends without what this process has still to do, such as to delete folders."""
        status = MISTAKE
        try:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # a trial that is killed leaves no process either
            for descriptor, file in ((1, self.log), (2, self.errors)):
                os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND), descriptor)
            sys.stdout, sys.stderr = open(1, "w", buffering=1), open(2, "w", buffering=1)  # noqa: SIM115
            tempfile.tempdir = str(self.temporary)
            os.chdir(self.folder)
            # After a fork torch renews its pool of threads. If two threads began to compute at once, one found none
            torch.set_num_threads(torch.get_num_threads())
            if kill_before:
                sys.addaudithook(_Killer(kill_before, self.folder))
            os.write(writing, b"x")
            os.close(writing)
            work()
            status = 0
        except SystemExit as error:
            status = 0 if error.code is None else error.code if isinstance(error.code, int) else FAILED
        except (MmgenError, KeyboardInterrupt) as error:
            print(f"error: {error}", file=sys.stderr)
            status = FAILED
        except BaseException:
            traceback.print_exc()
        finally:
            try:  # the work may have closed them, and the disk may be full
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(status)


class _Killer:
    """Kills this process before its call number `number` that names a file in `folder`."""

    def __init__(self, number: int, folder: Path) -> None:
        self.number, self.folder = number, str(folder)

    def __call__(self, event: str, arguments: tuple) -> None:
        if event in FILE_CALLS and arguments and self._concerns(str(arguments[0])):
            self.number -= 1
            if not self.number:
                os.kill(os.getpid(), signal.SIGKILL)

    def _concerns(self, path: str) -> bool:
        return path.startswith(f"{self.folder}/") or not path.startswith("/")


def complaints(errors: str, usual: str = "", allowed: str = "") -> list[str]:
    """What is wrong in a text on stderr: a traceback, or a line that is not among `usual`, which undisturbed work
    prints, and does not end with `allowed`."""
    if "Traceback" in errors:
        return [f"a traceback on stderr: {errors[-600:].strip()}"]
    lines = [line for line in errors.splitlines() if line and line not in usual.splitlines()]
    lines = [line for line in lines if not (allowed and line.endswith(allowed))]
    return [f"on stderr: {' / '.join(lines)[:600]}"] if lines else []


def run(work: Callable[[], object], folder: Path) -> Ending:
    """Do the work to its end."""
    return Fork(work, folder).wait()


def run_and_kill(work: Callable[[], object], folder: Path, after: float) -> Ending:
    """Begin the work, and kill it `after` seconds later."""
    fork = Fork(work, folder)
    while time.monotonic() - fork.began < after and not fork.ended():
        time.sleep(0.0001)
    fork.kill()
    return fork.wait()


def calls(work: Callable[[], object], folder: Path) -> int:
    """How many calls of the file system the work makes, found by a fork that counts them."""
    counted = Path(f"{folder}.calls")

    def counting() -> None:
        killer = _Killer(1 << 40, folder)
        sys.addaudithook(killer)
        work()
        counted.write_text(str((1 << 40) - killer.number))

    if (ending := run(counting, folder)).status:
        raise SystemExit(f"error: undisturbed work failed: {ending.output}")
    return int(counted.read_text())


def processes_in(folder: Path) -> list[int]:
    """The processes whose working folder is in `folder`."""
    numbers = []
    for place in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if place.readlink().is_relative_to(folder):
                numbers.append(int(place.parent.name))
        except OSError:
            continue  # it has ended, or is another user's
    return numbers


def survivors(folder: Path, seconds: float = 20.0) -> list[int]:
    """The processes in `folder` that have not ended after these seconds."""
    until = time.monotonic() + seconds
    while (numbers := processes_in(folder)) and time.monotonic() < until:
        time.sleep(0.01)
    return numbers
