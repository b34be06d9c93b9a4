"""The table of ways to write n questions: what is counted of a scene's questions."""

from types import SimpleNamespace

import pytest

from mmgen import Decoding
from mmgen.tensors import Example, Generation
from tools.different import COLUMNS, judge, table, ways_of

THINGS = [
    {"kind": kind, "color": color, "size": "big", "place": "grass", "side": "left"}
    for kind, color in (("dog", "brown"), ("car", "red"), ("cup", "blue"))
]
RUN = SimpleNamespace(model=SimpleNamespace(backbone=SimpleNamespace(end_id=0)))


def test_what_is_counted():
    example = Example("a", {}, facts={"things": THINGS, "captions": ["a brown dog and a cup"]})
    texts = [
        ("where is the dog?", (1, 2, 0)),
        ("Where is the dog?", (1, 2, 0)),
        ("where is the blue car?", (1, 3, 0)),
        ("is the car bigger than the cup?", (4, 5, 0)),
    ]
    row = judge([Generation("a", text, tokens, 0.0) for text, tokens in texts], example, RUN)
    assert {name: row[name] for name in COLUMNS[:4]} == {"different": 3, "relevant": 2, "discovered": 1, "things": 3}
    assert row["distance"] == pytest.approx((0 + 2 * 2 / 3 + 3 * 1) / 6)


def test_every_way_has_options_for_n_texts():
    for options in ways_of(5).values():
        assert Decoding(**options, num_return_sequences=5).texts == 5


def test_the_table_has_means_over_runs():
    rows = {"beams": [dict.fromkeys(COLUMNS, 1.0), dict.fromkeys(COLUMNS, 2.0)]}
    assert table(rows).splitlines()[-1] == "| beams | 1.50 | 1.50 | 1.50 | 1.50 | 1.50 | 2 |"
