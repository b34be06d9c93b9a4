"""What a trial is: cases with numbers, their outcomes, the journal of outcomes, and the table by surface."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case.

    surface  what was tried
    tries    how often: kills, starts, inputs
    wrong    what went wrong, a line each; empty if nothing did
    parts    further counts, which the table adds up
    phases   how many of the tries hit which phase of the work
    """

    surface: str
    tries: int
    wrong: tuple[str, ...] = ()
    parts: Mapping[str, int] = field(default_factory=dict)
    phases: Mapping[str, int] = field(default_factory=dict)


Case = Callable[[int], Outcome]  # runs the case with this number


class Piece(Protocol):
    """A trial, as a module.

    TRIES   what is counted, as a plural: "kills"
    COUNT   how many there are by default
    """

    TRIES: str
    COUNT: int

    def cycle(self) -> list[str]:
        """What the cases are, in turn; after the last it begins again."""

    def opened(self, seed: int, folder: Path) -> AbstractContextManager[Case]:
        """What runs cases until the end of the block. `folder`: an empty folder for the files of cases."""


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


@dataclass
class Journal:
    """The outcomes of one seed in a file, a line of JSON for each case. Raises SystemExit if its cases are others.

    cycle  what its cases are, in turn
    next   the number of the next case
    """

    path: Path
    seed: int
    cycle: Sequence[str] = ()
    next: int = 0
    rows: dict[str, Row] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

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
                self._count(line)

    @property
    def digest(self) -> str:
        """Of the cycle."""
        return hashlib.sha256(json.dumps([*self.cycle]).encode()).hexdigest()[:12]

    @property
    def tries(self) -> int:
        return sum(row.tries for row in self.rows.values())

    def add(self, outcome: Outcome, seconds: float) -> None:
        """Append the outcome of the next case."""
        line = {
            "seed": self.seed,
            "cycle": self.digest,
            "case": self.next,
            "surface": outcome.surface,
            "tries": outcome.tries,
            "wrong": outcome.wrong,
            "parts": outcome.parts,
            "phases": outcome.phases,
            "seconds": round(seconds, 3),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self._count(line)

    def _count(self, line: dict) -> None:
        row = self.rows.setdefault(line["surface"], Row())
        row.tries += line["tries"]
        row.cases += 1
        row.wrong += len(line["wrong"])
        row.seconds += line["seconds"]
        row.parts.update(line.get("parts", {}))
        row.phases.update(line.get("phases", {}))
        row.slowest = max(row.slowest, line["seconds"])
        self.wrong += [f"{line['surface']}, case {line['case']}: {text}" for text in line["wrong"]]
        self.next = max(self.next, line["case"] + 1)

    def table(self, tries: str) -> str:
        """The sums by surface as a Markdown table."""
        total = Row()
        for row in self.rows.values():
            total.tries, total.wrong, total.cases = (
                total.tries + row.tries,
                total.wrong + row.wrong,
                total.cases + row.cases,
            )
            total.seconds, total.slowest = total.seconds + row.seconds, max(total.slowest, row.slowest)
            total.parts.update(row.parts)
        names = ["wrong", "seconds", "slowest case, s", *total.parts]
        lines = [f"| surface | {tries} | {' | '.join(names)} |", f"|---|---:|{'---:|' * len(names)}"]
        for name, row in [*sorted(self.rows.items()), ("all", total)]:
            parts = "".join(f" {row.parts[part]:,} |" for part in total.parts)
            lines.append(f"| {name} | {row.tries:,} | {row.wrong} | {row.seconds:.0f} | {row.slowest:.1f} |{parts}")
        return "\n".join(lines)

    def phase_table(self, tries: str) -> str:
        """How many tries hit which phase, as a Markdown table; empty without phases."""
        lines = [
            f"| {name} | {phase} | {count:,} |"
            for name, row in sorted(self.rows.items())
            for phase, count in sorted(row.phases.items())
        ]
        return "\n".join([f"| surface | phase | {tries} |", "|---|---|---:|", *lines]) if lines else ""


def run(
    piece: Piece, journal: Journal, count: int, minutes: float, folder: Path, say: Callable[[str], object] = print
) -> None:
    """Run cases until the journal has `count` tries, or the time is over; a case that has begun ends. `folder`: for the
    files of cases. `say` gets a line for everything wrong, and one for progress every ten seconds."""
    began = said = time.monotonic()
    if journal.tries >= count:
        return
    with piece.opened(journal.seed, folder) as case:
        while journal.tries < count and time.monotonic() - began < 60 * minutes:
            start, known = time.monotonic(), len(journal.wrong)
            journal.add(case(journal.next), time.monotonic() - start)
            for text in journal.wrong[known:]:
                say(text)
            if time.monotonic() - said > 10:
                said = time.monotonic()
                say(f"{journal.tries:,} of {count:,} {piece.TRIES}, {len(journal.wrong)} wrong, {said - began:.0f} s")
