"""What a run keeps of the published weights that a step starts from: what its parts took, until it has learnt, and a
record of the files."""

from __future__ import annotations

from pathlib import Path

from ..errors import RunError
from ..files import read_table

WEIGHTS, RECORD = "start.safetensors", "start.json"  # in a step's folder


def digests(run: Path) -> dict[str, dict[str, str]]:
    """The steps of a run that have started from published weights -> file -> SHA-256. Raises RunError."""
    found = {}
    for path in sorted(run.glob(f"steps/*/{RECORD}")):
        found[path.parent.name] = files = read_table(path, sha256=dict)["sha256"]
        if not all(isinstance(digest, str) for digest in files.values()):
            raise RunError(f"{path}: damaged: 'sha256' holds no texts; copy it from where the run was made")
    return found


def unlike(run: Path, other: Path) -> str:
    """Why two runs are not of the same published weights; empty where they are."""
    own = digests(other)
    differs = [step for step, files in digests(run).items() if own.get(step, files) != files]
    return f"its step '{differs[0]}' has started from other weights" if differs else ""
