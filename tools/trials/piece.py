"""What a trial is: cases with numbers, their outcomes, the journal of outcomes, and the table by surface."""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Protocol

ROOT = Path(__file__).resolve().parents[2]
UNKNOWN = "an unknown commit"  # of lines that do not say theirs


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case.

    surface  what was tried
    tries    how often: kills, starts, inputs
    wrong    what went wrong, a line each; empty if nothing did
    parts    further counts, which the table adds up
    sizes    sizes and times, of which the table has the largest
    phases   how many of the tries hit which phase of the work
    """

    surface: str
    tries: int
    wrong: tuple[str, ...] = ()
    parts: Mapping[str, int] = field(default_factory=dict)
    phases: Mapping[str, int] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


Case = Callable[[int], Outcome]  # runs the case with this number


class Piece(Protocol):
    """A trial, as a module.

    TRIES   what is counted, as a plural: "kills"
    COUNT   how many there are by default
    KEEPS   whether the folder of the cases stays, beside the journal, for the next call
    """

    TRIES: str
    COUNT: int
    KEEPS: bool

    def cycle(self) -> list[str]:
        """What the cases are, in turn; after the last it begins again."""

    def opened(self, seed: int, folder: Path) -> AbstractContextManager[Case]:
        """What runs cases until the end of the block. `folder`: for the files of cases, empty unless it is kept."""


@dataclass
class Row:
    """The sums of one surface. `slowest`: seconds of its slowest case."""

    tries: int = 0
    wrong: int = 0
    cases: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    parts: Counter[str] = field(default_factory=Counter)
    phases: Counter[str] = field(default_factory=Counter)
    sizes: Counter[str] = field(default_factory=Counter)

    def add(self, line: Mapping) -> None:
        """Count a line of the journal."""
        self.tries += line["tries"]
        self.cases += 1
        self.wrong += len(line["wrong"])
        self.seconds += line["seconds"]
        self.parts.update(line.get("parts", {}))
        self.phases.update(line.get("phases", {}))
        self.sizes |= Counter(line.get("sizes", {}))  # the larger of two
        self.slowest = max(self.slowest, line["seconds"])


@dataclass
class Journal:
    """The outcomes of one seed in a file, a line of JSON for each case; of two lines of a case the later one counts.
    Raises SystemExit if its cases are others.

    cycle  what its cases are, in turn
    lines  number of a case -> its line
    """

    path: Path
    seed: int
    cycle: Sequence[str] = ()
    lines: dict[int, dict] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch()
        text = self.path.read_text(encoding="utf-8")
        complete = text[: text.rfind("\n") + 1]  # a killed trial may leave half a line
        if complete != text:
            self.path.write_text(complete, encoding="utf-8")
        for number, line in enumerate(map(json.loads, complete.splitlines()), 1):
            if line["seed"] == self.seed:
                if line["cycle"] != self.digest:
                    raise SystemExit(
                        f"error: {self.path}:{number}: the cases of seed {self.seed} were others then; choose another "
                        "--seed or --folder"
                    )
                self.lines[line["case"]] = line

    @property
    def digest(self) -> str:
        """Of the cycle."""
        return hashlib.sha256(json.dumps([*self.cycle]).encode()).hexdigest()[:12]

    @cached_property
    def commit(self) -> str:
        """The commit that is checked out as this trial begins, with "+" if files differ from it."""
        return commit()

    @property
    def next(self) -> int:
        """The number of the next case."""
        return max(self.lines, default=-1) + 1

    @property
    def tries(self) -> int:
        return sum(line["tries"] for line in self.lines.values())

    @property
    def wrong(self) -> list[str]:
        """What is wrong, in the order of cases."""
        lines = [line for _, line in sorted(self.lines.items())]
        return [f"{line['surface']}, case {line['case']}: {text}" for line in lines for text in line["wrong"]]

    @property
    def wrong_cases(self) -> list[int]:
        return sorted(number for number, line in self.lines.items() if line["wrong"])

    @property
    def untried(self) -> list[str]:
        """What the cycle has, but no try was of."""
        tried = {self.cycle[number % len(self.cycle)] for number, line in self.lines.items() if line["tries"]}
        return [name for name in dict.fromkeys(self.cycle) if name not in tried]

    @property
    def commits(self) -> Counter[str]:
        """How many cases are of which commit."""
        return Counter(line.get("commit", UNKNOWN) for line in self.lines.values())

    def add(self, number: int, outcome: Outcome, seconds: float) -> None:
        """Append the outcome of a case."""
        line = {
            "seed": self.seed,
            "cycle": self.digest,
            "case": number,
            "surface": outcome.surface,
            "tries": outcome.tries,
            "wrong": outcome.wrong,
            "parts": outcome.parts,
            "phases": outcome.phases,
            "sizes": outcome.sizes,
            "seconds": round(seconds, 3),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "commit": self.commit,
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self.lines[number] = line

    def rows(self) -> dict[str, Row]:
        """The sums by surface, in the order of the alphabet."""
        rows: dict[str, Row] = {}
        for line in self.lines.values():
            rows.setdefault(line["surface"], Row()).add(line)
        return dict(sorted(rows.items()))

    def table(self, tries: str) -> str:
        """The sums by surface as a Markdown table."""
        total = Row()
        for line in self.lines.values():
            total.add(line)
        sizes = [f"largest {size}" for size in total.sizes]
        names = ["wrong", "seconds", "slowest case, s", *total.parts, *sizes]
        lines = [f"| surface | {tries} | {' | '.join(names)} |", f"|---|---:|{'---:|' * len(names)}"]
        for name, row in [*self.rows().items(), ("all", total)]:
            numbers = [*(row.parts[part] for part in total.parts), *(row.sizes[size] for size in total.sizes)]
            parts = "".join(f" {number:,} |" for number in numbers)
            lines.append(f"| {name} | {row.tries:,} | {row.wrong} | {row.seconds:.0f} | {row.slowest:.1f} |{parts}")
        return "\n".join(lines)

    def phase_table(self, tries: str) -> str:
        """How many tries hit which phase, as a Markdown table; empty without phases."""
        lines = [
            f"| {name} | {phase} | {count:,} |"
            for name, row in self.rows().items()
            for phase, count in sorted(row.phases.items())
        ]
        return "\n".join([f"| surface | phase | {tries} |", "|---|---|---:|", *lines]) if lines else ""


def commit() -> str:
    """The commit of this checkout, with "+" if tracked files differ from it; UNKNOWN without git."""
    git = partial(subprocess.run, cwd=ROOT, capture_output=True, text=True)
    try:
        head = git(["git", "rev-parse", "--short", "HEAD"])
        changed = git(["git", "status", "--porcelain", "--untracked-files=no"])
    except OSError:
        return UNKNOWN
    return head.stdout.strip() + "+" * bool(changed.stdout.strip()) if not head.returncode else UNKNOWN


def run(
    piece: Piece,
    journal: Journal,
    count: int,
    minutes: float,
    folder: Path,
    say: Callable[[str], object] = print,
    again: bool = False,
) -> None:
    """Run cases until the journal has `count` tries, or the time is over; a case that has begun ends. `folder`: for the
    files of cases. `say` gets a line for everything wrong, and one for progress every ten seconds. `again`: run the
    cases that the journal says are wrong, and no other."""
    began = said = time.monotonic()
    numbers = iter(journal.wrong_cases) if again else count_up(journal, count)
    if (first := next(numbers, None)) is None:
        return
    with piece.opened(journal.seed, folder) as case:
        for number in chain([first], numbers):
            start = time.monotonic()
            if start - began >= 60 * minutes:
                break
            outcome = case(number)
            journal.add(number, outcome, time.monotonic() - start)
            for text in outcome.wrong:
                say(f"{outcome.surface}, case {number}: {text}")
            if time.monotonic() - said > 10:
                said = time.monotonic()
                say(f"{journal.tries:,} of {count:,} {piece.TRIES}, {len(journal.wrong)} wrong, {said - began:.0f} s")


def count_up(journal: Journal, count: int) -> Iterator[int]:
    """The numbers of further cases, until the journal has `count` tries."""
    while journal.tries < count:
        yield journal.next
