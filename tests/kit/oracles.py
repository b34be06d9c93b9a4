"""Where the numbers lie that the original repositories' code computed (`tests/oracles/README.md`)."""

from pathlib import Path

ORACLES = Path(__file__).resolve().parents[1] / "oracles"
