"""A service under load: requests a second and times to an answer, with and without batches."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..machine import Machine
from ..run import Figures, Part, Step
from ..sizes import Sizes
from ..table import table


def steps(sizes: Sizes, work: Path) -> list[Step]:
    few = ("--images", "8", "--requests", "8") if sizes.device == "cpu" else ()
    return [Step("service", ("-m", "tools.gpu.measures.service", *sizes.shape, *few))]


def lines(figures: Mapping[str, Figures], machine: Machine) -> list[str]:
    if "service" not in figures:
        return []
    rows = [
        (
            batch,
            clients,
            f"{load['rate']:.1f}",
            f"{load['median']:.0f}",
            f"{load['high']:.0f}",
            load["lost"],
            f"{result['memory']:.0f}",
        )
        for batch, result in figures["service"].items()
        for clients, load in result["clients"].items()
    ]
    header = ("batch", "clients", "answers a second", "median, ms", "95th percentile, ms", "lost", "memory, MB")
    return table(header, rows)


SERVICE = Part("service", "A service under load", steps, lines)
