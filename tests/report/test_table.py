"""Values of the table over seeds."""

import statistics

from mmgen.report.table import Spread, Table, cell, markdown, spread


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
