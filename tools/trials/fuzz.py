"""The trial of damaged files: every case is `BATCH` inputs of one surface of `tools.fuzz`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.fuzz import all_surfaces, fuzz

from .piece import Case, Outcome

TRIES, COUNT = "inputs", 1_000_000
BATCH = 1000


@contextmanager
def opened(seed: int, folder: Path) -> Iterator[Case]:
    """Cases take the surfaces in turn. The fuzzer makes folders of its own for files."""
    surfaces = list(all_surfaces().values())

    def case(number: int) -> Outcome:
        surface = surfaces[number % len(surfaces)]
        tally = fuzz(surface, BATCH, seed, first=number // len(surfaces) * BATCH)
        wrong = [
            f"input {finding.number}: {finding.outcome.kind}: {finding.outcome.message[:200]!r}"
            for finding in tally.findings
        ]
        return Outcome(surface.name, tally.counts.total(), tuple(wrong))

    yield case
