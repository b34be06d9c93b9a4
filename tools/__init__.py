"""Tools to run by hand from the root of a checkout.

    python -m tools.gpu        check and measure mmgen on a GPU
    python -m tools.hub        compare every published VisualBERT checkpoint (needs a network)

The tools may use what tests share, so `tests/kit` is made importable here as `kit`."""

import sys
from pathlib import Path

TESTS = str(Path(__file__).resolve().parents[1] / "tests")
if TESTS not in sys.path:
    sys.path.append(TESTS)
