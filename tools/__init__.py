"""What is run by hand, from the root of a checkout: the fuzzer, the checks on a GPU, long trials, the house's figures.

    python -m tools.fuzz       spoil everything that mmgen reads
    python -m tools.gpu        check and measure mmgen on a GPU
    python -m tools.kills      kill runs at any moment, and compare what they end with
    python -m tools.exits    start several processes, and count how they leave
    python -m tools.bit_flips      turn bits in files without checksums
    python -m tools.hub        compare every published VisualBERT checkpoint (needs a network)
    python -m tools.house      print the sizes of the house

They may use what tests share (`tests/kit`), so `kit` is made importable here.
"""

import sys
from pathlib import Path

TESTS = str(Path(__file__).resolve().parents[1] / "tests")
if TESTS not in sys.path:
    sys.path.append(TESTS)
