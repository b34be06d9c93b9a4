"""SDPA against flex attention, at the lengths of recipes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median

from ..machine import Machine
from ..run import Figures, Part, Step
from ..sizes import Sizes
from ..table import table

LEAST = 1.2  # times faster, before flex attention would be worth a second path


def steps(sizes: Sizes, work: Path) -> list[Step]:
    tiny = ("--rows", "2", "--prefixes", "8") if sizes.device == "cpu" else ()
    command = ("-m", "tools.gpu.measures.attention", *sizes.shape, "--rounds", str(sizes.rounds), *tiny)
    return [Step("attention", command)]


def lines(figures: Mapping[str, Figures], machine: Machine) -> list[str]:
    rows, faster = [], []
    for case in figures["attention"]["cases"]:
        sdpa, flex = median(case["sdpa"]), median(case["flex"])
        faster.append(sdpa / flex)
        cells = (f"{case['rows']} rows of {case['slots']} slots", case["precision"], f"{sdpa:.2f}", f"{flex:.2f}")
        rows.append((*cells, f"{sdpa / flex:.2f}", f"{case['difference']:.0e}"))
    header = ("case", "precision", "SDPA, ms", "flex attention, ms", "times faster", "largest difference")
    verdict = (
        f"Flex attention would be taken from {LEAST} times on; it is {min(faster):.2f} to {max(faster):.2f} times."
    )
    return [*table(header, rows), "", verdict]


ATTENTION = Part("attention", "SDPA and flex attention", steps, lines)
