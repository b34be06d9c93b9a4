"""Tools to run by hand from the root of a checkout.

    python tools/bench.py      measure mmgen in minutes on a GPU, or beside other systems
    python -m tools.hub        compare every published VisualBERT checkpoint (needs a network)
    python -m tools.pages      write the reference pages of docs/

The tools may use what tests share, so `tests/kit` is made importable here as `kit`."""

import sys
from pathlib import Path

TESTS = str(Path(__file__).resolve().parents[1] / "tests")
if TESTS not in sys.path:
    sys.path.append(TESTS)
