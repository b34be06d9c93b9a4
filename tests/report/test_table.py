"""Notes below the table of a run."""

from mmgen.report.table import describe_seeds


def test_the_seeds_of_rows_are_named():
    assert describe_seeds({"a": [4], "b": [4]}) == "seed 4"
    assert describe_seeds({"a": [4, 5], "b": [4, 5]}) == "mean ± standard deviation over seeds 4, 5"
    assert describe_seeds({"a": [4, 5], "b": [4]}) == "mean ± standard deviation over seeds: a 4, 5; b 4"
