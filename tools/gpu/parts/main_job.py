"""The main job, `recipes/bertgen_vqa.toml`; the same command resumes from its checkpoint."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path

from ..machine import Machine
from ..run import Figures, Part, Step
from ..sizes import Sizes
from ..table import table

RATE = re.compile(r"^(.+?): (training|writing)\s+(\d+)/\d+\s+(\d+) (?:pairs|texts)/s\s+(\d+) s", re.MULTILINE)
DONE = re.compile(r"^(?:done in ([\d.]+) minutes|nothing to do)", re.MULTILINE)
WAITING = re.compile(r"^(.+?): [\d.]+% of the slots were padding; ([\d.]+%) of the time", re.MULTILINE)


def steps(sizes: Sizes, work: Path) -> list[Step]:
    """The steps; without the package of caption metrics, these are left out."""
    absent = importlib.util.find_spec("pycocoevalcap") is None or sizes.device == "cpu"
    without = ("--set", 'metrics.overlap.type="discovery"') if absent else ()
    run = ("-m", "mmgen", "run", "recipes/bertgen_vqa.toml", "--set", f'output="{work / "runs"}"')
    return [Step("run", (*run, *without, *sizes.main), read)]


def read(stdout: str) -> Figures:
    """Read rates and the table from the output of the run."""
    done = DONE.search(stdout)
    shares = {match[1]: match[2] for match in WAITING.finditer(stdout)}
    rates = [
        {"step": m[1], "work": m[2], "count": int(m[3]), "rate": int(m[4]), "seconds": int(m[5])}
        for m in RATE.finditer(stdout)
    ]
    rows = [line for line in stdout.splitlines() if line.startswith("|")]
    return {"minutes": done and done[1], "rates": rates, "waiting": shares, "table": rows}


def lines(figures: Mapping[str, Figures], machine: Machine) -> list[str]:
    result = figures["run"]
    rows = [
        (f"{r['step']}, {r['work']}", r["count"], r["rate"], r["seconds"], result["waiting"].get(r["step"], "-"))
        for r in result["rates"]
    ]
    texts = [f"The last start of this job took {result['minutes']} minutes.", ""] if result["minutes"] else []
    header = ("step", "pairs or texts", "per second", "s", "waiting for data")
    return [*texts, *table(header, rows), "", *result["table"]]


MAIN_JOB = Part("main", "The main job", steps, lines)
