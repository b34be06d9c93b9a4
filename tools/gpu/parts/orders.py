"""Writing in any order beside left to right: passes and milliseconds per text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median

from ..machine import Machine
from ..run import Figures, Part, Step
from ..sizes import Sizes
from ..table import table


def steps(sizes: Sizes, work: Path) -> list[Step]:
    counts = (
        "--pictures",
        *map(str, sizes.pictures),
        "--length",
        str(sizes.lengths[-1]),
        "--rounds",
        str(sizes.rounds),
    )
    return [Step("orders", ("-m", "tools.gpu.measures.orders", *sizes.shape, *counts))]


def lines(figures: Mapping[str, Figures], machine: Machine) -> list[str]:
    if "orders" not in figures:
        return []
    cases = figures["orders"]["cases"]
    pictures = [*dict.fromkeys(case["pictures"] for case in cases)]
    rows = []
    for way in dict.fromkeys(case["way"] for case in cases):
        by_pictures = {case["pictures"]: case for case in cases if case["way"] == way}
        times = [1000 * median(by_pictures[count]["seconds"]) / count for count in pictures]
        rows.append((way, by_pictures[pictures[0]]["passes"], *(f"{milliseconds:.2f}" for milliseconds in times)))
    header = ("way", "passes", *(f"ms per text, {count} at a time" for count in pictures))
    return [f"Texts of {cases[0]['tokens']} tokens, bf16.", "", *table(header, rows)]


ORDERS = Part("orders", "Writing in any order", steps, lines)
