"""Real data and weights, in the folder that the environment variable MMGEN_SHARED names; by default `shared` beside the
checkout. Tests that need them are skipped without it."""

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("MMGEN_SHARED") or Path(__file__).resolve().parents[3] / "shared")


def shared(relative: str) -> Path:
    path = SHARED / relative
    if not path.exists():
        pytest.skip(f"needs {relative}, which is not in {SHARED}; MMGEN_SHARED names another folder")
    return path
