"""The environment of a run: versions, machine and device."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

VERSIONS = ("mmgen-framework", "torch", "transformers", "accelerate", "tokenizers", "timm", "numpy", "pycocoevalcap")


def environment() -> dict[str, Any]:
    """Versions, machine and device: what besides recipe and data can change a result."""
    import torch

    versions = {}
    for name in VERSIONS:
        with contextlib.suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {
        "command": " ".join(["mmgen", *sys.argv[1:]]),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "versions": versions,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "processes": int(os.environ.get("WORLD_SIZE", 1)),
        "can change the result": "to rounding, and so in the end other texts: another device, cpu, number of threads "
        "or of processes, or version of "
        "torch; another version of transformers, tokenizers or timm; steps/*/log.jsonl: `halved`, updates that ran out "
        "of memory. "
        "Not: loader workers, kills and resumes, when checkpoints are written",
    }
