"""The machine: its GPU, recognised by name and memory, and the peak rates of its data sheet.

`python -m tools.gpu.machine` prints it as JSON. A run starts a separate process for this, so that only processes
that measure hold GPU memory."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from .checkout import ROOT

ASK = (sys.executable, "-m", "tools.gpu.machine")
PATIENCE = 120  # seconds


@dataclass(frozen=True)
class Peaks:
    """Dense matrix products in TFLOP/s, and memory in TB/s; source: NVIDIA's data sheets of the SXM boards."""

    bf16: float
    tf32: float
    fp32: float
    bandwidth: float


# name, least and most memory in GB (1e9 bytes), peaks; a slice of a GPU has the name and less memory
DATASHEET = (
    (re.compile(r"NVIDIA H100 80GB HBM3"), (75, 90), Peaks(989, 494, 67, 3.35)),
    (re.compile(r"NVIDIA H200"), (135, 160), Peaks(989, 494, 67, 4.8)),
)


@dataclass(frozen=True)
class Machine:
    """name is None without a GPU; memory in GB (1e9 bytes)."""

    name: str | None
    memory: float
    count: int
    processor: str
    cores: int
    versions: dict[str, str]

    @property
    def peaks(self) -> Peaks | None:
        """The peak rates of the device; None for a device that is not in the table."""
        matches = [peaks for name, (least, most), peaks in DATASHEET if self._is(name) and least <= self.memory <= most]
        return matches[0] if matches else None

    def _is(self, name: re.Pattern[str]) -> bool:
        return self.name is not None and bool(name.fullmatch(self.name))

    @property
    def slug(self) -> str:
        """The name of the folder of its journals, so that results of different machines are kept apart."""
        several = f"{self.count} x " if self.count > 1 else ""
        return (
            re.sub(r"\W+", "-", f"{several}{self.name} {self.memory:.0f}GB").strip("-").lower()
            if self.name
            else "no-gpu"
        )

    def __str__(self) -> str:
        if self.name is None:
            return f"no GPU, {self.processor}, {self.cores} cores"
        several = f"{self.count} x " if self.count > 1 else ""
        return f"{several}{self.name}, {self.memory:.0f} GB; {self.processor}, {self.cores} cores"


def here() -> Machine:
    """This machine, as this process sees it."""
    import torch

    available = torch.cuda.is_available()
    properties = torch.cuda.get_device_properties(0) if available else None
    versions = {"python": platform.python_version(), "torch": torch.__version__, "cuda": str(torch.version.cuda)}
    versions |= {name: version(name) for name in ("transformers", "accelerate", "timm")}
    return Machine(
        torch.cuda.get_device_name(0) if available else None,
        properties.total_memory / 1e9 if properties else 0.0,
        torch.cuda.device_count() if available else 0,
        _processor(),
        len(os.sched_getaffinity(0)),
        versions,
    )


def query() -> Machine:
    """This machine, as a separate process sees it."""
    try:
        done = subprocess.run(ASK, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        raise SystemExit(
            f"error: cannot find out within {PATIENCE} s which GPU this machine has; see whether `nvidia-smi` answers"
        ) from None
    try:
        return Machine(**json.loads(done.stdout.strip().splitlines()[-1]))
    except (ValueError, IndexError, TypeError):
        why = (done.stderr.strip().splitlines() or [f"no output; exit status {done.returncode}"])[-1]
        raise SystemExit(
            f"error: cannot find out which GPU this machine has: {why}; `{shlex.join(['python', *ASK[1:]])}` says more"
        ) from None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


if __name__ == "__main__":
    print(json.dumps(asdict(here())))
