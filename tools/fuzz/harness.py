"""Runs cases in separate processes, so that a crash, a hang or a memory leak costs one case and is reported.

A case is a function of (seed, surface, number), so every finding can be reproduced."""

from __future__ import annotations

import gc
import importlib
import json
import math
import mmap
import os
import random
import re
import resource
import select
import signal
import struct
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unicodedata import category

from mmgen.errors import JOINERS, MmgenError

from . import mutations
from .folder import CaseFolder, in_memory
from .watch import Watch

SECONDS = 30.0  # of processor time, a case
WAITS = 10  # a case may also wait for other processes, all in all this many times as long
MEMORY = 3 << 29  # bytes that a case may take besides what the process has already
LONGEST = 1000  # characters of a message's line
MOST_SHOWN = 1000  # characters of a finding
REFUSED, READ = "refused", "read"
CONTROLS, CONTROL = 50, -1  # cases of a control, and its number
BLANK = f"{JOINERS}\n"  # what a message may have, besides printable letters and blanks of any width
INTERNAL = re.compile(r": [\w. ]+ raises [A-Z]\w+")  # what `registry.part_calls` says about a part's own error
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
    starts: bool = False  # reading it may start programs
    uncontrolled: str = ""  # why there are no whole files that must be read


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
    seconds: float = 0.0  # of processor time

    @property
    def cases(self) -> int:
        return self.counts.total()


class Bench:
    """A surface with its whole files, ready for cases. `limit`: seconds of processor time of a case."""

    def __init__(self, surface: Surface, place: Path, seed: int = 0, limit: float = SECONDS) -> None:
        self.surface, self.seed, self.limit = surface, seed, limit
        source = place / "whole"
        source.mkdir(parents=True)
        self.prepared = surface.prepare(source)
        self.folder = CaseFolder(source, place / "case")
        self.watch: Watch | None = None  # of the process that runs cases
        self.controlled = bool(surface.uncontrolled)

    def spoil(self, number: int) -> Path:
        """Write the files of a case; the one that is bad. The mutations of a negative number damage nothing."""
        self.folder.restore()
        draw = random.Random(f"{self.seed}/{self.surface.name}/{number}")
        with mutations.harmless() if number < 0 else nullcontext():
            return self.surface.spoil(draw, self.folder.path, self.prepared)

    def once(self, number: int) -> Outcome:
        """Run one case in this process, which is watched from now on. The number CONTROL stands for the control."""
        return self._control() if number == CONTROL else self._case(number)

    def _control(self) -> Outcome:
        """Run cases whose mutations damage nothing, until mmgen reads one: a reader that refuses everything is wrong.
        Some are damaged in other ways, such as by another name."""
        outcome = Outcome(REFUSED)
        for number in range(CONTROL - 1, CONTROL - 1 - CONTROLS, -1):
            if (outcome := self._case(number)).kind != REFUSED:
                return outcome
        return Outcome("the whole files are refused", outcome.message)

    def _case(self, number: int) -> Outcome:
        self.watch = self.watch or Watch(self.folder.path)
        surface, prepared, path = self.surface, self.prepared, self.spoil(number)
        try:
            with self.watch.reading():
                content = surface.read(path, prepared)
        except MmgenError as error:
            wrong = judge(str(error), path, surface.placed, surface.lines, surface.named)
            return self._forbidden() or Outcome(wrong or REFUSED, str(error))
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)
            places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in where if "mmgen" in frame.filename]
            return Outcome(f"traceback: {type(error).__name__}", f"{error} (by way of {' '.join(places[-4:])})")
        if forbidden := self._forbidden():
            return forbidden
        try:
            surface.check(path, content, prepared)
        except AssertionError as error:
            return Outcome("wrong result", str(error)[:800])
        except Exception as error:
            return Outcome("taken, and the independent reader refuses it", f"{type(error).__name__}: {error}"[:800])
        return Outcome(READ)

    def _forbidden(self) -> Outcome | None:
        problem = self.watch.problem if self.watch and not self.surface.starts else ""
        return Outcome("does what reading must not do", problem) if problem else None

    def run(self, first: int, last: int, budget: float = math.inf) -> Tally:
        """Run the cases from `first` to before `last` in children, which are replaced when they die; fewer if they
        take more than `budget` seconds of processor time. The first call runs the control before, which is counted
        only as a finding."""
        tally = Tally()
        if not self.controlled:
            self.controlled = True
            _Child(self, CONTROL, CONTROL + 1, math.inf).join(tally)
            tally.counts.clear()
        while tally.cases < last - first and tally.seconds < budget:
            _Child(self, first + tally.cases, last, budget - tally.seconds).join(tally)
        return tally


class _Child:
    """A process that runs cases until it dies or has done them.

    Its counts are in memory that both processes see, so that nothing is said for each case: only findings are sent."""

    counts = struct.Struct("=qqqqd")  # number of cases done, refused, read, wrong, seconds of the slowest

    def __init__(self, bench: Bench, first: int, last: int, budget: float) -> None:
        self.bench, self.first, self.last, self.budget = bench, first, last, budget
        self.shared = mmap.mmap(-1, self.counts.size)
        self.counts.pack_into(self.shared, 0, 0, 0, 0, 0, 0.0)
        self.out, into = os.pipe()
        self.process = os.fork()
        if not self.process:
            os.close(self.out)
            self._work(into)
        os.close(into)

    def join(self, tally: Tally) -> None:
        """Wait for the end, and add what was done to the tally. A case that takes too long ends the process: by a
        signal after `limit` seconds of processor time, which a busy machine does not use up; by us if it waits."""
        limit, received, hang = self.bench.limit, b"", ""
        done, since = -1, time.monotonic()
        while True:
            ready, _, _ = select.select([self.out], [], [], min(limit / 2, 1.0))
            if ready:
                data = os.read(self.out, 1 << 16)
                if not data:
                    break
                received += data
            elif done != (done := self.counts.unpack_from(self.shared)[0]):  # it may be half written
                since = time.monotonic()
            elif time.monotonic() - since > WAITS * limit:
                hang = f"hang of over {WAITS * limit:g} s"
                os.kill(self.process, signal.SIGKILL)
                break
        os.close(self.out)
        _, status, usage = os.wait4(self.process, 0)
        done, refused, read, wrong, slowest = self.counts.unpack_from(self.shared)
        tally.counts.update({REFUSED: refused, READ: read, "wrong": wrong})
        tally.seconds += usage.ru_utime + usage.ru_stime
        tally.slowest = max(tally.slowest, slowest)
        for line in received.splitlines():
            number, kind, message = json.loads(line)
            tally.findings.append(Finding(self.bench.surface.name, number, Outcome(kind, message)))
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF:
            hang = f"hang of over {limit:g} s of processor time"
        if hang or status:
            kind = hang or "crash"
            tally.counts["wrong"] += 1
            tally.findings.append(Finding(self.bench.surface.name, self.first + done, Outcome(kind)))

    def _work(self, into: int) -> None:
        """The child's life: it never returns."""
        counts = Counter[str]()
        slowest, done = 0.0, 0
        try:
            warnings.simplefilter("ignore")
            gc.freeze()  # what is imported needs no collecting
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
            for number in range(self.first, self.last):
                began = time.monotonic()
                numbers = counts[REFUSED], counts[READ], counts["wrong"], slowest
                self.counts.pack_into(self.shared, 0, done, *numbers)
                signal.setitimer(signal.ITIMER_PROF, self.bench.limit)  # ends this process; each case begins it again
                outcome = self.bench.once(number)
                slowest, done = max(slowest, time.monotonic() - began), done + 1
                kind = outcome.kind if outcome.kind in (READ, REFUSED) else "wrong"
                counts[kind] += 1
                if kind == "wrong":
                    line = json.dumps([number, outcome.kind, outcome.message[:MOST_SHOWN]]) + "\n"
                    os.write(into, line.encode())
                if time.process_time() > self.budget:
                    break
            numbers = counts[REFUSED], counts[READ], counts["wrong"], slowest
            self.counts.pack_into(self.shared, 0, done, *numbers)
        except BaseException:  # a mistake of the fuzzer itself, never to run on as a second parent
            traceback.print_exc()
            os._exit(2)
        os._exit(0)


def judge(text: str, path: Path, placed: str = "", lines: int = 1, named: str = "") -> str:
    """What is wrong with a message; "" if it is short, printable, and names the file and the place in it."""
    if not text or len(text.split("\n")) > lines:
        return f"message of {len(text.splitlines())} lines"
    if any(len(line) > LONGEST for line in text.split("\n")):
        return "message without end"
    if not all(letter.isprintable() or letter in BLANK or category(letter) == "Zs" for letter in text):
        return "message with control characters"
    if INTERNAL.search(text):
        return "internal error of a part"
    if not re.search(named or re.escape(path.name), text):
        return "message that does not name the file"
    if placed and not re.search(placed, text):
        return "message without a place"
    return ""


def command(surface: str, number: int, seed: int) -> str:
    """The command that repeats one case."""
    return f"python -m tools.fuzz --surface {surface} --case {number} --seed {seed}"


def fuzz(surface: Surface, cases: int, seed: int = 0, seconds: float = SECONDS, first: int = 0) -> Tally:
    """Run cases of one surface, each of at most `seconds` of processor time."""
    with in_memory() as place:
        warm()
        return Bench(surface, Path(place), seed, seconds).run(first, first + cases)


def warm() -> None:
    """Import what children share; their memory limit is counted from here."""
    for name in HEAVY:
        importlib.import_module(name)


def shares(surfaces: Sequence[str], cases: int, weights: dict[str, float]) -> dict[str, int]:
    """The number of cases per surface, at least `cases` in total."""
    total = sum(weights.get(name, 1.0) for name in surfaces)
    return {name: math.ceil(cases * weights.get(name, 1.0) / total) for name in surfaces}
