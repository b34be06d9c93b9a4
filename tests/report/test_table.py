"""Notes below the table of a run."""

from mmgen.report.table import _below_chance, describe_seeds


def test_scores_worse_than_chance_are_in_a_note():
    chance = {"Q->A": 25.0, "QA->R": 25.0, "Q->AR": 6.25, "loss": 2.0}

    def notes(**values):
        return [*_below_chance("step", values, chance, frozenset({"loss"}))]

    assert notes(**{"Q->A": 25.0, "QA->R": 30.0, "Q->AR": None, "loss": 1.0, "people": 1.0}) == []
    assert notes(**{"Q->A": 24.999, "Q->AR": 6.25, "loss": 2.001}) == []  # equal in the digits that are shown
    bad = notes(**{"Q->A": 26.0, "QA->R": 24.0, "Q->AR": 5.0, "loss": 2.5})
    assert bad == ["step: worse than chance in QA->R, Q->AR, loss"]


def test_the_seeds_of_rows_are_named():
    assert describe_seeds({"a": [4], "b": [4]}) == "seed 4"
    assert describe_seeds({"a": [4, 5], "b": [4, 5]}) == "mean ± standard deviation over seeds 4, 5"
    assert describe_seeds({"a": [4, 5], "b": [4]}) == "mean ± standard deviation over seeds: a 4, 5; b 4"
