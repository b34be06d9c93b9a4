"""Differences between runs, as text."""

from mmgen.report import compare_intervals
from mmgen.report.table import Spread, cell


def test_a_rounded_zero_has_no_minus():
    assert str(compare_intervals.Difference(-0.001, (-0.004, 0.004))) == "+0.00 [0.00, 0.00]"
    assert str(compare_intervals.Difference(-0.006, (-0.01, 0.0))) == "-0.01 [-0.01, 0.00]"
    assert cell(Spread(-0.001, 0.5)) == "0.00 ± 0.50"
