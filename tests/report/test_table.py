"""Values of the table over seeds."""

import statistics

from mmgen.report.table import _below_chance, over_seeds
from mmgen.scoring.table import Cell


def test_a_deviation_needs_two_values():
    rows = [{"a": 1.0, "b": None, "c": None}, {"a": 3.0, "b": 2.0, "c": None}]
    assert over_seeds(rows) == {"a": Cell(2.0, statistics.stdev([1.0, 3.0])), "b": Cell(2.0)}


def test_every_score_worse_than_chance_is_in_a_note():
    chance = {"Q->A": 25.0, "QA->R": 25.0, "Q->AR": 6.25, "loss": 2.0, "people": None}
    rows = {
        "good": {"Q->A": 25.0, "QA->R": 30.0, "Q->AR": None, "loss": 1.0, "people": 1.0},
        "equal": {"Q->A": 24.999, "QA->R": 25.0, "Q->AR": 6.25, "loss": 2.001},  # in the digits that are shown
        "bad": {"Q->A": 26.0, "QA->R": 24.0, "Q->AR": 5.0, "loss": 2.5},
    }
    assert [*_below_chance(rows, chance, frozenset({"loss"}))] == [
        "bad: QA->R 24.00 is below chance, 25.00; Q->AR 5.00 is below chance, 6.25; loss 2.50 is above chance, 2.00"
    ]
    columns = [f"type {number}" for number in range(6)]
    (note,) = _below_chance({"bad": dict.fromkeys(columns, 0.0)}, dict.fromkeys(columns, 1.0), frozenset())
    assert note.endswith("; type 3 0.00 is below chance, 1.00; and 2 more columns")
    (note,) = _below_chance({"bad": dict.fromkeys(columns[:5], 0.0)}, dict.fromkeys(columns, 1.0), frozenset())
    assert note.endswith("; and 1 more column")
