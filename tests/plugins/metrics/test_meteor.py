"""METEOR: the input and output of its program, and the results without Java."""

import numpy as np
import pytest
from kit.java import COUNTS, fake_java
from mmgen_metrics.meteor import meteor, statistics, summands

from mmgen.errors import UnavailableError

pytestmark = pytest.mark.slow


def test_meteor_s_program_sees_one_line_a_segment_and_no_bars_but_its_own(monkeypatch, tmp_path):
    fake_java(tmp_path, monkeypatch, "print('Error:', sys.stdin.read())")
    with pytest.raises(UnavailableError, match=r"Error: SCORE \|\|\| a cat sat \|\|\| the cat \|\|\| a dog runs\\n"):
        statistics(["a dog\nruns |||"], [["a cat\u2028sat", "the\r\n||| cat"]], 600)


def test_meteor_s_formula_equals_its_program():
    sums = summands(np.array([line.split() for line in COUNTS], np.float64))
    assert meteor(sums) == pytest.approx(list(COUNTS.values()), abs=1e-12)
    assert meteor(sums.sum(0)) == pytest.approx(0.4019772548541734, abs=1e-12)
