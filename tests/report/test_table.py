"""Values of the table over seeds."""

import statistics

from mmgen.report.table import Spread, cell, spread


def test_a_spread_needs_two_values():
    assert spread([]) is None and spread([None]) is None and spread([3.0, None]) == 3.0
    assert spread([1.0, 3.0]) == Spread(2.0, statistics.stdev([1.0, 3.0]))
    assert [cell(None), cell(2.0), cell(Spread(2.0, 0.5))] == ["-", "2.00", "2.00 ± 0.50"]
