"""A run: executes the parts, most important first, and records the result of every step at once.

Each part has 8 minutes per run. Finished steps are not repeated. Stopped and failed steps run again in the next run,
after everything that is untried at this commit: a slow or broken part never keeps the others from a GPU that is
available for minutes only. A run of mmgen resumes from its checkpoint."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from .checkout import ROOT
from .journal import BEGUN, DONE, FAILED, STOPPED, Journal
from .launch import Ended, launch
from .machine import Machine
from .sizes import Sizes

MINUTES = 8.0  # a part, a run
LEAST = 5.0  # seconds that must be left for a step to begin
Figures = dict[str, Any]


def as_json(stdout: str) -> Figures:
    """The JSON object that a command prints: the last line, or everything from the first brace on."""
    last = stdout.strip().rpartition("\n")[2]
    return json.loads(last if last.startswith("{") else stdout[stdout.index("{") :])


@dataclass(frozen=True)
class Step:
    """One command of a part.

    arguments  what stands behind `python`: `-m MODULE ...`
    read       what it has found, from its stdout
    product    a file or folder that other steps need; it is made again where it is not there and they still need it
    after      steps that have to be done before
    """

    name: str
    arguments: tuple[str, ...]
    read: Callable[[str], Figures] = as_json
    product: Path | None = None
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """steps: of sizes and a folder to work in; lines: of the page, from the figures of steps that are done."""

    name: str
    title: str
    steps: Callable[[Sizes, Path], list[Step]]
    lines: Callable[[Mapping[str, Figures], Machine], list[str]]


@dataclass
class Run:
    """The state that parts share. `forked`: see `launch`."""

    folder: Path
    machine: Machine
    commit: str
    sizes: Sizes
    forked: bool = False
    say: Callable[[str], None] = partial(print, flush=True)
    until: float | None = None  # time.monotonic() after which nothing begins
    slug: str = field(default="")
    spent: dict[str, float] = field(default_factory=dict)  # seconds of each part
    tried: set[tuple[str, str]] = field(default_factory=set)  # part and step, in this run

    def __post_init__(self) -> None:
        self.slug = self.slug or self.machine.slug

    @property
    def work(self) -> Path:
        return (self.folder / "work" / self.slug).resolve()

    def journal(self, part: Part) -> Journal:
        return Journal(self.folder / "journal" / self.slug / f"{part.name}.json")

    def measure(self, parts: Sequence[Part], behind: Callable[[], object] = lambda: None) -> bool:
        """Every part, one after the other, and then what was stopped or failed before; whether all their steps are
        done. `behind` is called behind every part, since a machine may just vanish. Ctrl-C ends the run."""
        self._describe()
        for again in (False, True):
            for part in parts:
                self._part(part, again)
                behind()
        return self.finished(parts)

    def finished(self, parts: Sequence[Part]) -> bool:
        """Whether all steps are done."""
        return not any(todo(part.steps(self.sizes, self.work / part.name), self.journal(part)) for part in parts)

    def _describe(self) -> None:
        path = self.folder / "journal" / self.slug / "machine.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(asdict(self.machine)), encoding="utf-8")
        partial.replace(path)

    def _part(self, part: Part, again: bool) -> None:
        """Run the steps of a part that are untried at this commit, or (`again`) those that an earlier run has
        tried."""
        journal, work, began = self.journal(part), self.work / part.name, time.monotonic()
        work.mkdir(parents=True, exist_ok=True)
        until = began + 60 * MINUTES - self.spent.get(part.name, 0.0)
        until = min(until, self.until) if self.until else until
        for step in todo(part.steps(self.sizes, work), journal):
            if (part.name, step.name) in self.tried or self._before(journal, step) != again:
                continue
            if lacking := [name for name in step.after if not journal.done(name)]:
                self.say(f"{part.name}: {step.name}: skipped, because {', '.join(lacking)} is not done")
            elif until - time.monotonic() < LEAST:
                self.say(f"{part.name}: {step.name}: left for the next run; the time is over")
            else:
                self.tried.add((part.name, step.name))
                self._step(part, step, journal, work, until - time.monotonic())
        self.spent[part.name] = self.spent.get(part.name, 0.0) + time.monotonic() - began

    def _before(self, journal: Journal, step: Step) -> bool:
        """Whether this commit has tried a step without success."""
        result = journal.steps.get(step.name, {})
        return result.get("commit") == self.commit and result["state"] != DONE

    def _step(self, part: Part, step: Step, journal: Journal, work: Path, limit: float) -> None:
        out, log = work / f"{step.name}.out", work / f"{step.name}.log"
        shown = shlex.join(["python", *step.arguments]).replace(f"{ROOT}/", "")
        about = {"command": shown, "commit": self.commit, "versions": self.machine.versions}
        self.say(f"{part.name}: {step.name}: {shown}")
        journal.keep(step.name, {"state": BEGUN, **about})
        try:
            ended = launch(step.arguments, out, log, limit, self.forked)
        except KeyboardInterrupt:
            journal.keep(step.name, {"state": STOPPED, "why": "stopped by hand", **about})
            raise
        ended, figures = _read_figures(step, out, ended)
        why = ended.why + (f": {_last(log)}" if ended.state == FAILED else "")
        result = {"state": ended.state, "why": why, **about, "seconds": round(ended.seconds, 1), "figures": figures}
        journal.keep(step.name, result)
        self.say(f"{part.name}: {step.name}: {ended.state}, {ended.seconds:.0f} s{why and ', ' + why}")


def todo(steps: Sequence[Step], journal: Journal) -> list[Step]:
    """The steps to run. A preparing step is run only if an unfinished step needs its product."""
    pending = {step.name for step in steps if not journal.done(step.name)}
    lost = {step.name for step in steps if step.product is not None and not step.product.exists()}
    needed = {name for step in steps if step.name in pending for name in step.after}
    return [step for step in steps if step.name in pending or step.name in lost & needed]


def _read_figures(step: Step, out: Path, ended: Ended) -> tuple[Ended, Figures]:
    """The figures of a command, also of a failed command that printed some; other output is a failure."""
    try:
        return ended, step.read(out.read_text(encoding="utf-8"))
    except (ValueError, KeyError, IndexError, TypeError) as error:
        if ended.state != DONE:
            return ended, {}
        return Ended(FAILED, f"unexpected output ({type(error).__name__}: {error})", ended.seconds), {}


def _last(log: Path) -> str:
    """The last meaningful line of output; for a crashed interpreter, the error and its place."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    crash = next((number for number, line in enumerate(lines) if line.startswith("Fatal Python error")), None)
    if crash is not None:
        place = next((line for line in lines[crash:] if line.startswith("File ") and str(ROOT) in line), "")
        return f"{lines[crash]} {place}".replace(f"{ROOT}/", "").strip()[:300]
    return (lines[-1] if lines else "no output")[:300]
