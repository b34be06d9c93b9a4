"""Training and generation that run out of memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..machine import Machine
from ..run import Figures, Part, Step
from ..sizes import Sizes
from ..table import share, table


def steps(sizes: Sizes, work: Path) -> list[Step]:
    command = ("-m", "tools.gpu.measures.cuts", *sizes.shape, "--images", str(sizes.images))
    return [Step("cuts", command)]


def lines(figures: Mapping[str, Figures], machine: Machine) -> list[str]:
    rows = []
    for case in figures["cuts"]["cases"]:
        differences = ", ".join(f"{name} {value:.1e}" for name, value in case["differences"].items())
        texts = f"; {case['same']} of {case['texts']} texts" if "texts" in case else ""
        moved = f"{case['moved']:.1e}" if "moved" in case else "-"
        memory = f"{case['limit'] / 1e9:.2f} of {case['peak'] / 1e9:.2f}" if case["peak"] else "-"
        cells = (case["work"], share(case["share"]), memory, case["ended"], case["halved"])
        rows.append((*cells, differences + texts, moved, "yes" if case["good"] else "NO"))
    header = ("work", "share of temporary memory", "GB", "out of memory", "splits", "differences", "weights moved")
    note = (
        "fp32 without dropout. Passed: memory ran out, and nothing differs by more than 1e-5 (keys' biases left out)."
    )
    return [note, "", *table((*header, "passed"), rows)]


CUTS = Part("cuts", "Out of memory", steps, lines)
