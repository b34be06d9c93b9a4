"""Runs cases in separate processes, so that a crash, a hang or a memory leak costs one case and is reported.

A case is a function of (seed, surface, number), so every finding can be reproduced."""

from __future__ import annotations

import importlib
import json
import math
import os
import random
import re
import resource
import select
import shutil
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mmgen.errors import MmgenError

SECONDS = 30.0  # a case
MEMORY = 3 << 29  # bytes that a case may take besides what the process has already
LONGEST = 1000  # characters of a message's line
REFUSED, READ = "refused", "read"
HEAVY = (
    "h5py",
    "timm",
    "mmgen_captioneval.metric",
    "mmgen_encoders.loading",
    "mmgen_regions.roi",
    "mmgen.inference.load",
    "mmgen.scoring",
)


@dataclass(frozen=True)
class Surface:
    """A kind of input.

    prepare  fill a new folder with whole files; what it returns is handed to `spoil`
    spoil    (draw, folder, prepared) -> the file that is bad now; the folder is this case's own
    read     (path, prepared) -> what mmgen makes of it; raises MmgenError
    check    (path, content, prepared): raises AssertionError when that is not what the file says
    placed   a message must match it: the place in the file
    """

    name: str
    prepare: Callable[[Path], Any]
    spoil: Callable[[random.Random, Path, Any], Path]
    read: Callable[[Path, Any], Any]
    check: Callable[[Path, Any, Any], None]
    placed: str = ""
    lines: int = 1  # that a message may have
    named: str = ""  # what a message must match instead of the file's name


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case: refused, read, or what is wrong."""

    kind: str
    message: str = ""


@dataclass(frozen=True)
class Finding:
    """A case that went wrong."""

    surface: str
    number: int
    outcome: Outcome


@dataclass
class Tally:
    """The counts of one surface."""

    counts: Counter = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    slowest: float = 0.0
    seconds: float = 0.0


def once(surface: Surface, seed: int, number: int, folder: Path, source: Path, prepared: Any) -> Outcome:
    """Run one case in `folder`, which is created again from the undamaged files."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder, symlinks=True)
    path = surface.spoil(random.Random(f"{seed}/{surface.name}/{number}"), folder, prepared)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            content = surface.read(path, prepared)
    except MmgenError as error:
        wrong = judge(str(error), path, surface.placed, surface.lines, surface.named)
        return Outcome(wrong or REFUSED, str(error))
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)
        places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in where if "mmgen" in frame.filename]
        return Outcome(f"traceback: {type(error).__name__}", f"{error} (by way of {' '.join(places[-4:])})")
    try:
        surface.check(path, content, prepared)
    except AssertionError as error:
        return Outcome("wrong result", str(error)[:800])
    except Exception as error:
        return Outcome("taken, and the independent reader refuses it", f"{type(error).__name__}: {error}"[:800])
    return Outcome(READ)


def judge(text: str, path: Path, placed: str = "", lines: int = 1, named: str = "") -> str:
    """What is wrong with a message; "" if it is short, printable, and names the file and the place in it."""
    if not text or len(text.split("\n")) > lines:
        return f"message of {len(text.splitlines())} lines"
    if any(len(line) > LONGEST for line in text.split("\n")):
        return "message without end"
    if not all(line.isprintable() for line in text.split("\n")):
        return "message with control characters"
    if not re.search(named or re.escape(path.name), text):
        return "message that does not name the file"
    if placed and not re.search(placed, text):
        return "message without a place"
    return ""


def fuzz(surface: Surface, cases: int, seed: int = 0, seconds: float = SECONDS, first: int = 0) -> Tally:
    """Run cases of one surface in a child process, which is replaced when it dies."""
    tally, began = Tally(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mmgen-fuzz-") as place:
        source, work = Path(place, "whole"), Path(place, "case")
        source.mkdir()
        _warm()
        prepared = surface.prepare(source)
        number = first
        while number < first + cases:
            number = _child(surface, seed, number, first + cases, work, source, prepared, tally, seconds)
    tally.seconds = time.monotonic() - began
    return tally


def _warm() -> None:
    """Import what children share; their memory limit is counted from here."""
    for name in HEAVY:
        importlib.import_module(name)


def _child(surface, seed, first, last, work, source, prepared, tally, seconds) -> int:  # noqa: PLR0913
    """Run cases from `first` on, until all are done or the child must be replaced; returns the next case's number."""
    out, into = os.pipe()
    child = os.fork()
    if not child:
        os.close(out)
        _work(surface, seed, first, last, work, source, prepared, into)
    os.close(into)
    number, began, buffered = first, time.monotonic(), b""
    while number < last:
        ready, _, _ = select.select([out], [], [], max(0.0, seconds - (time.monotonic() - began)))
        data = os.read(out, 1 << 16) if ready else b""
        if not data:
            kind = f"hang of over {seconds:g} s" if not ready else "crash"
            os.kill(child, signal.SIGKILL)
            tally.counts["wrong"] += 1
            tally.findings.append(Finding(surface.name, number, Outcome(kind)))
            number += 1
            break
        *lines, buffered = (buffered + data).split(b"\n")
        for line in lines:
            kind, message, took = json.loads(line)
            tally.slowest, began = max(tally.slowest, took), time.monotonic()
            tally.counts[kind if kind in (READ, REFUSED) else "wrong"] += 1
            if kind not in (READ, REFUSED):
                tally.findings.append(Finding(surface.name, number, Outcome(kind, message)))
            number += 1
    os.close(out)
    os.waitpid(child, 0)
    return number


def _work(surface, seed, first, last, work, source, prepared, into) -> None:  # noqa: PLR0913
    """The child process: one line per case, then the end."""
    try:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        for number in range(first, last):
            began = time.monotonic()
            outcome = once(surface, seed, number, work, source, prepared)
            line = json.dumps([outcome.kind, outcome.message, time.monotonic() - began]) + "\n"
            os.write(into, line.encode())
    except BaseException:  # a mistake of the fuzzer itself, never to run on as a second parent
        traceback.print_exc()
        os._exit(2)
    os._exit(0)


def shares(surfaces: Sequence[str], cases: int, weights: dict[str, float]) -> dict[str, int]:
    """The number of cases per surface, at least `cases` in total."""
    total = sum(weights.get(name, 1.0) for name in surfaces)
    return {name: math.ceil(cases * weights.get(name, 1.0) / total) for name in surfaces}
