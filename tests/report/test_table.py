"""Values of the table over seeds."""

import statistics

from mmgen.report.table import Spread, Table, _below_chance, cell, markdown, spread


def test_a_spread_needs_two_values():
    assert spread([]) is None and spread([None]) is None and spread([3.0, None]) == 3.0
    assert spread([1.0, 3.0]) == Spread(2.0, statistics.stdev([1.0, 3.0]))
    assert [cell(None), cell(2.0), cell(Spread(2.0, 0.5))] == ["-", "2.00", "2.00 ± 0.50"]


def test_a_table_shows_itself_in_a_notebook():
    scores = Table(("<b>", "x"), {"both": {"<b>": 1.0, "x": None}}, {}, {}, ("a & b",), title="texts")
    assert repr(scores) == "<Table of texts: both; <b>, x>"
    assert scores._repr_html_() == (
        "<table>\n<caption>texts</caption>\n<tr><th>step</th><th>&lt;b&gt;</th><th>x</th></tr>\n"
        "<tr><td>both</td><td>1.00</td><td>-</td></tr>\n</table>\n<p>a &amp; b</p>"
    )
    assert markdown(scores).splitlines()[2].startswith("| step |")


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
