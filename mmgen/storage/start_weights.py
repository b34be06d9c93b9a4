"""Saved start of a step from published weights: the tensors its parts took, until the step is trained, and the SHA-256
of the files."""

from __future__ import annotations

from pathlib import Path

from ..errors import RunError
from ..files import read_table

WEIGHTS, RECORD = "start.safetensors", "start.json"  # in a step's folder


def digests(run: Path) -> dict[str, dict[str, str]]:
    """Step that started from published weights -> file -> SHA-256. Raises RunError."""
    digests_by_step = {}
    for path in sorted(run.glob(f"steps/*/{RECORD}")):
        digests_by_step[path.parent.name] = files = read_table(path, sha256=dict)["sha256"]
        if not all(isinstance(digest, str) for digest in files.values()):
            raise RunError(f"{path}: damaged: 'sha256' must contain strings; copy the file from where the run was made")
    return digests_by_step


def unlike(run: Path, baseline: Path) -> str:
    """How the published weights of two runs differ; empty if they are the same."""
    baseline_digests = digests(baseline)
    differs = [step for step, files in digests(run).items() if baseline_digests.get(step, files) != files]
    return f"step '{differs[0]}' started from different weights" if differs else ""
