"""Several processes on one device (or one each), whole and in slices (FSDP), beside one process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..machine import Machine
from ..sitting import Figures, Part, Step
from ..sizes import Sizes
from ..table import table

RECIPE = "tests/gpu/parts/several.toml"
PROCESSES = 2
PLACE = "several/default/seed-0"
KINDS = {"one": (), "two": (), "slices": ("--set", "training.shard=true")}


def steps(sizes: Sizes, work: Path) -> list[Step]:
    module = "tests.gpu.measures.ranks"
    torchrun = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={PROCESSES}", "-m", module)
    together = torchrun if sizes.device != "cpu" else ("-m", module, "--fork", str(PROCESSES))
    found = []
    for kind, settings in KINDS.items():
        start = ("-m", "mmgen") if kind == "one" else together
        output = work / kind
        command = (*start, "run", RECIPE, "--set", f'output="{output}"', *settings, *sizes.several)
        found.append(Step(kind, command, lambda stdout: {"said": stdout[-400:]}, product=output))
    for kind in ("two", "slices"):
        runs = (str(work / "one" / PLACE), str(work / kind / PLACE))
        found.append(Step(f"{kind}-compared", ("-m", "tests.gpu.measures.weights", *runs), after=("one", kind)))
    return found


def lines(found: Mapping[str, Figures], machine: Machine) -> list[str]:
    names = {"two-compared": "whole in each", "slices-compared": "in slices (FSDP)"}
    rows = [
        (names[name], one["processes"][1], *(f"{one[what]:.1e}" for what in ("weights", "loss", "grad_norm")))
        for name, one in found.items()
        if name in names
    ]
    devices = machine.count or 1
    through = "NCCL" if devices >= PROCESSES else "gloo, since NCCL refuses two processes on a device"
    told = (
        f"{PROCESSES} processes on {devices} device{'s' * (devices > 1)}, through {through}; fp32, beside one process."
    )
    return [told, "", *table(("model", "processes", "weights differ by", "losses by", "gradient norms by"), rows)]


SEVERAL = Part("several", "Several processes", steps, lines)
