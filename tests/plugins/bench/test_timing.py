"""What is measured, and its ratios."""

from mmgen_bench import tables
from mmgen_bench.flops import NAIVE, OURS, Work
from mmgen_bench.timing import Ratio, Result


def test_a_ratio_is_the_median_of_the_rounds_own():
    ours = Result("K = 1", OURS, (1.0, 2.0, 4.0), Work(10, 100), 4)
    naive = Result("K = 1", NAIVE, (3.0, 4.0, 16.0), Work(50, 250), 2)
    assert Ratio.of(naive, ours) == Ratio(3.0, 2.0, 4.0, 2.5)
    first, second = tables.rows_of_results([ours, naive])
    assert first[:3] == ("K = 1", "ours", "2,000.0")
    assert second == ("", "naive", "4,000.0", "325%", "3.00", "2.00-4.00", "2.50", "+20% *", "50.0", "0")
