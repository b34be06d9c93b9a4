"""Several processes on one device (or one each), compared with one process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..machine import Machine
from ..run import Figures, Part, Step
from ..sizes import Sizes
from ..table import table

RECIPE = "tools/gpu/parts/several.toml"
RANKS = "tools.gpu.measures.ranks"
PROCESSES = 2
PLACE = "several/default/seed-0"
KINDS = {"one": 0, "two": PROCESSES}


def steps(sizes: Sizes, work: Path) -> list[Step]:
    commands = []
    for kind, processes in KINDS.items():
        output = work / kind
        command = (*started(processes, sizes.device), "run", RECIPE, "--set", f'output="{output}"', *sizes.several)
        commands.append(Step(kind, command, lambda stdout: {"said": stdout[-400:]}, product=output))
    runs = (str(work / "one" / PLACE), str(work / "two" / PLACE))
    commands.append(Step("two-compared", ("-m", "tools.gpu.measures.weights", *runs), after=("one", "two")))
    return commands


def started(processes: int, device: str) -> tuple[str, ...]:
    """The arguments before mmgen's own. 0 processes: mmgen itself, without torchrun."""
    if not processes:
        return ("-m", "mmgen")
    if device == "cpu":
        return ("-m", RANKS, "--fork", str(processes))
    return ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "-m", RANKS)


def lines(figures: Mapping[str, Figures], machine: Machine) -> list[str]:
    rows = [
        (result["processes"][1], *(f"{result[what]:.1e}" for what in ("weights", "loss", "grad_norm")))
        for name, result in figures.items()
        if name == "two-compared"
    ]
    devices = machine.count or 1
    through = "NCCL" if devices >= PROCESSES else "gloo, since NCCL refuses two processes on a device"
    count = f"{PROCESSES} processes on {devices} device{'s' * (devices > 1)}"
    texts = f"{count}, through {through}; fp32, compared with one process."
    return [texts, "", *table(("processes", "weights differ by", "losses by", "gradient norms by"), rows)]


SEVERAL = Part("several", "Several processes", steps, lines)
