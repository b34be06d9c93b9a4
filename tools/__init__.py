"""Tools to run by hand from the root of a checkout: the fuzzer, checks on a GPU, long trials, the figures of the house.

    python -m tools.fuzz       feed damaged files to everything that mmgen reads
    python -m tools.trials     try what mmgen promises again and again: kills, starts, damaged files, the tests
    python -m tools.gpu        check and measure mmgen on a GPU
    python -m tools.bit_flips  flip bits in files without checksums
    python -m tools.hub        compare every published VisualBERT checkpoint (needs a network)
    python -m tools.house      print the sizes of the house
    python -m tools.pages      write the reference pages of docs/

The tools may use what tests share, so `tests/kit` is made importable here as `kit`."""

import sys
from pathlib import Path

TESTS = str(Path(__file__).resolve().parents[1] / "tests")
if TESTS not in sys.path:
    sys.path.append(TESTS)
