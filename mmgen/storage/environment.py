"""The environment of a run: versions, machine and device."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import shlex
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

OURS = "mmgen-framework"
CAN_CHANGE = (
    "Another device, processor, number of threads or of processes, or another version of torch or of a library above "
    "changes numbers to rounding, and so in the end some texts. So does an update that ran out of memory: "
    "steps/STEP/log.jsonl has 'halved' for it. Loader workers, stops and resumes, and the time of checkpoints change "
    "nothing."
)


def environment(providers: Iterable[str] = ()) -> dict[str, Any]:
    """Versions, machine and device: what besides recipe and data can change a result. `providers`: distributions of
    the parts that are used; versions are theirs, mmgen's own, and those of all that these need."""
    import torch

    versions = {each: found for name in [OURS, *providers] for each, found in _versions(name).items()}
    return {
        "command": shlex.join(["mmgen", *sys.argv[1:]]),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "versions": versions,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "processes": int(os.environ.get("WORLD_SIZE", 1)),
        "can change the result": CAN_CHANGE,
    }


@functools.cache
def _versions(name: str) -> dict[str, str]:
    """A distribution's version and those of all that it needs. They are read once: what a process has imported stays
    as it is, whatever is installed later, and reading takes as long as a small step."""
    versions = {}
    for each in (name, *_needs(name)):
        with contextlib.suppress(PackageNotFoundError):
            versions[each] = version(each)
    return versions


def _needs(name: str) -> list[str]:
    """The distributions that one needs, its extras left out."""
    try:
        wanted = [Requirement(each) for each in requires(name) or ()]
    except (PackageNotFoundError, InvalidRequirement):
        return []
    return [each.name for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]
