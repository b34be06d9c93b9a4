"""Several processes on one device (or one each), unsharded and sharded (FSDP), compared with one process."""

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
SLICES = ("--set", "training.shard=true")
KINDS = {"one": (0, ()), "two": (PROCESSES, ()), "slices": (PROCESSES, SLICES), "one-slice": (1, SLICES)}


def steps(sizes: Sizes, work: Path) -> list[Step]:
    """The steps; CPUs have no NCCL, so sharding with one process is left out."""
    kinds = {kind: what for kind, what in KINDS.items() if kind != "one-slice" or sizes.device != "cpu"}
    commands = []
    for kind, (processes, settings) in kinds.items():
        output = work / kind
        command = (
            *started(processes, sizes.device),
            "run",
            RECIPE,
            "--set",
            f'output="{output}"',
            *settings,
            *sizes.several,
        )
        commands.append(Step(kind, command, lambda stdout: {"said": stdout[-400:]}, product=output))
    for kind in (kind for kind in kinds if kind != "one"):
        runs = (str(work / "one" / PLACE), str(work / kind / PLACE))
        commands.append(Step(f"{kind}-compared", ("-m", "tools.gpu.measures.weights", *runs), after=("one", kind)))
    return commands


def started(processes: int, device: str) -> tuple[str, ...]:
    """The arguments before mmgen's own. 0 processes: mmgen itself, without torchrun."""
    if not processes:
        return ("-m", "mmgen")
    if device == "cpu":
        return ("-m", RANKS, "--fork", str(processes))
    return ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "-m", RANKS)


def lines(figures: Mapping[str, Figures], machine: Machine) -> list[str]:
    names = {"two-compared": "whole in each", "slices-compared": "in slices (FSDP)"}
    names["one-slice-compared"] = "in slices (FSDP) of one process, through NCCL"
    rows = [
        (names[name], result["processes"][1], *(f"{result[what]:.1e}" for what in ("weights", "loss", "grad_norm")))
        for name, result in figures.items()
        if name in names
    ]
    devices = machine.count or 1
    through = "NCCL" if devices >= PROCESSES else "gloo, since NCCL refuses two processes on a device"
    count = f"{PROCESSES} processes on {devices} device{'s' * (devices > 1)}"
    texts = f"{count}, through {through}; fp32, compared with one process."
    return [texts, "", *table(("model", "processes", "weights differ by", "losses by", "gradient norms by"), rows)]


SEVERAL = Part("several", "Several processes", steps, lines)
