"""Real data and weights, in a folder `shared` beside the checkout. Tests that need them are skipped without it."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared"


def shared(relative: str) -> Path:
    path = SHARED / relative
    if not path.exists():
        pytest.skip(f"needs {relative}, which is not beside this checkout")
    return path
