"""The trial of damaged files: a case is a batch of inputs of one surface of `tools.fuzz`, a few seconds of work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.fuzz import BATCHES, Bench, all_surfaces
from tools.fuzz.folder import in_memory
from tools.fuzz.harness import READ, REFUSED, command, warm

from .piece import Case, Outcome

TRIES, COUNT = "inputs", 1_000_000
KEEPS = False


def cycle() -> list[str]:
    """Surfaces with the sizes of their batches."""
    return [f"{name}, {BATCHES.get(name, BATCHES[''])} inputs" for name in all_surfaces()]


@contextmanager
def opened(seed: int, folder: Path) -> Iterator[Case]:
    """Cases take the surfaces in turn. Files of inputs are in memory; each surface is prepared once."""
    surfaces, benches = list(all_surfaces().values()), dict[str, Bench]()
    with in_memory() as place:
        warm()

        def case(number: int) -> Outcome:
            surface = surfaces[number % len(surfaces)]
            name, batch = surface.name, BATCHES.get(surface.name, BATCHES[""])
            bench = benches.get(name) or benches.setdefault(name, Bench(surface, Path(place, name), seed))
            first = number // len(surfaces) * batch
            tally = bench.run(first, first + batch)
            wrong = [
                f"{command(name, finding.number, seed)}: {finding.outcome.kind}: {finding.outcome.message[:200]!r}"
                for finding in tally.findings
            ]
            counts = {kind: tally.counts[kind] for kind in (REFUSED, READ)}
            return Outcome(name, tally.cases, tuple(wrong), {**counts, "processor ms": round(1000 * tally.seconds)})

        yield case
