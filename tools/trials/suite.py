"""The trial of the tests on a busy machine: every case runs them once, beside a load on all cores.

`MMGEN_TRIALS_TESTS` may hold other arguments for pytest, such as `-n 2` for the whole suite; by default, the tests
that run before every commit."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import commands
from .piece import Case, Outcome

TRIES, COUNT = "runs", 10
KEEPS = False
ROOT = Path(__file__).resolve().parents[2]
TESTS = "-n 2 -m 'not slow'"
LIMIT = 7200.0  # seconds; a run that takes longer hangs
LOAD = "while True: sum(range(10_000))"
COUNTED = re.compile(r"(\d+) (passed|skipped)")
FAILED = re.compile(r"^(FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)


def cycle() -> list[str]:
    return [os.environ.get("MMGEN_TRIALS_TESTS", TESTS)]


@contextmanager
def opened(seed: int, folder: Path) -> Iterator[Case]:
    """The load has a process for every core."""
    arguments = shlex.split(*cycle())
    load = [subprocess.Popen([sys.executable, "-c", LOAD]) for _ in os.sched_getaffinity(0)]
    try:
        yield lambda number: tests(arguments)
    finally:
        for process in load:
            process.kill()
            process.wait()


def tests(arguments: list[str]) -> Outcome:
    """Run the tests once; every failed test is wrong."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rfE", *arguments]
    try:
        done = commands.run(command, ROOT, LIMIT)
    except subprocess.TimeoutExpired:
        return Outcome(" ".join(arguments), 1, (f"hangs for over {LIMIT:g} seconds",))
    wrong = sorted({f"{match[2]} failed" for match in FAILED.finditer(done.stdout)})
    if done.returncode and not wrong:
        wrong = [f"pytest ended with exit code {done.returncode}: {done.stdout[-300:]!r} {done.stderr[-300:]!r}"]
    counts = {kind: int(number) for number, kind in COUNTED.findall(done.stdout[-300:])}
    return Outcome(" ".join(arguments), 1, tuple(wrong), counts)
