"""The environment of a run: versions of packages, digests of their sources, machine and device."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import re
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

from .. import __version__
from ..features.fingerprints import random_features
from ..recipe.tables import Recipe, parts_in
from ..registry import OURS, installed

CAN_CHANGE = (
    "Another device, processor, number of threads or of processes, or another version of torch or of a library above "
    "changes results slightly (floating-point rounding), and so may change some texts. An update that ran out of "
    "memory does the same; steps/STEP/log.jsonl then has the smaller 'micro_batch_size'. Loader workers, stops, "
    "resumes and the time of checkpoints change nothing. On a GPU, even a repeated run may differ by rounding, since "
    "sums have no fixed order."
)


def environment(recipe: Recipe) -> dict[str, Any]:
    """Versions, machine and device: everything besides recipe and data that can change a result. The versions are those
    of mmgen, of the distributions of the recipe's parts, and of their requirements."""
    import torch

    versions = {OURS: __version__}
    for name in _with_requirements((OURS, *providers(recipe))):
        with contextlib.suppress(PackageNotFoundError):
            versions.setdefault(name, version(name))
    versions |= {part.source.distribution: part.source.version for part in installed().parts if part.source.file}
    random = random_features(recipe.inputs)
    return {
        "command": shlex.join(["mmgen", *sys.argv[1:]]),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "versions": versions,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "threads": torch.get_num_threads(),
        "processes": int(os.environ.get("WORLD_SIZE", 1)),
        "can change the result": CAN_CHANGE,
        **({"random features": random} if random else {}),
    }


def providers(recipe: Recipe) -> list[str]:
    """The distributions of the parts of a recipe."""
    used = {type(config) for config in parts_in(recipe)}
    parts = (part for part in installed().parts if part.config in used and not part.source.file)
    return sorted({part.source.distribution for part in parts})


@functools.cache
def _with_requirements(names: tuple[str, ...]) -> list[str]:
    """Distributions and what they require, without extras; read once, since that takes as long as a small step."""
    required = [text for name in names for text in requires(name) or () if "extra ==" not in text]
    return [*names, *(re.split(r"[^\w.-]", text, maxsplit=1)[0] for text in required)]
