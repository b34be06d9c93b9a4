"""`python -m tools.fuzz --cases 10000`: spread cases over the surfaces, and print a table. The exit code is 1 if
there are findings."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from mmgen.errors import did_you_mean  # noqa: E402
from mmgen.progress import table as aligned_table  # noqa: E402

from . import all_surfaces  # noqa: E402
from .folder import in_memory  # noqa: E402
from .harness import READ, REFUSED, SECONDS, Bench, Finding, Tally, command, fuzz, shares  # noqa: E402

WEIGHTS = {
    "weights": 0.3,
    "pretrained": 0.3,
    "run_folder": 0.4,
    "results": 0.06,
    "checkpoint": 0.06,
    "commands": 0.4,
    "store": 1.5,
    "recipe": 1.5,
}
SHOWN = 12  # kinds of findings a surface


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="number of cases over all surfaces")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--surface", action="append", help="test this surface only; may be repeated")
    parser.add_argument("--case", type=int, help="run one case of the surface by its number, in this process")
    parser.add_argument("--keep", type=Path, help="with --case: copy the files of the case to this folder")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="limit of a case, of processor time")
    options = parser.parse_args()
    surfaces = all_surfaces()
    names = options.surface or list(surfaces)
    if unknown := [name for name in names if name not in surfaces]:
        hint = did_you_mean(unknown[0], surfaces)
        parser.error(f"--surface {unknown[0]}: unknown surface{hint}; choose from: {', '.join(surfaces)}")
    if options.case is not None:
        return _run_case(surfaces[names[0]], options)
    tallies = {}
    for name, cases in shares(names, options.cases, WEIGHTS).items():
        tallies[name] = fuzz(surfaces[name], cases, options.seed, options.seconds)
        _print_findings(name, tallies[name], options.seed)
    print("\n" + table(tallies))
    return int(any(tally.findings for tally in tallies.values()))


def _run_case(surface, options) -> int:
    with in_memory() as place:
        bench = Bench(surface, Path(place), options.seed)
        outcome = bench.once(options.case)
        if options.keep:
            shutil.copytree(bench.folder.path, options.keep, symlinks=True, dirs_exist_ok=True)
    print(f"{outcome.kind}: {outcome.message}")
    return int(outcome.kind not in (READ, REFUSED))


def _print_findings(name: str, tally: Tally, seed: int) -> None:
    """Print the findings, similar ones as one line."""
    kinds: dict[str, list[Finding]] = {}
    for finding in tally.findings:
        message = re.sub(r"/(tmp|dev)/\S*|\d+|'[^']*'", "", finding.outcome.message)
        kinds.setdefault(f"{finding.outcome.kind}: {message[:30]}{message[-30:]}", []).append(finding)
    for findings in list(kinds.values())[:SHOWN]:
        first = findings[0]
        print(
            f"{command(name, first.number, seed)} ({len(findings)} alike): {first.outcome.kind}: "
            f"{first.outcome.message[:400]!r}",
            file=sys.stderr,
            flush=True,
        )


def table(tallies: dict[str, Tally]) -> str:
    """A Markdown table with one row per surface."""
    rows = [["surface", "cases", "refused", "read", "wrong", "slowest, ms", "seconds", "cases/s"]]
    total = Tally()
    for name, tally in [*tallies.items(), ("all", total)]:
        rows.append(
            [
                name,
                f"{tally.counts.total()}",
                f"{tally.counts[REFUSED]}",
                f"{tally.counts[READ]}",
                f"{tally.counts['wrong']}",
                f"{1000 * tally.slowest:.0f}",
                f"{tally.seconds:.0f}",
                f"{tally.cases / max(tally.seconds, 1e-9):.0f}",
            ]
        )
        total.counts += tally.counts
        total.slowest, total.seconds = max(total.slowest, tally.slowest), total.seconds + tally.seconds
    return aligned_table(rows)


if __name__ == "__main__":
    sys.exit(main())
