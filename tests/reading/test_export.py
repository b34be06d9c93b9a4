"""Ids of examples in exported files."""

import pytest

from mmgen.reading.export import number_or_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), ("42", 42), ("007", "007"), ("", ""), ("-1", "-1"), ("٣", "٣"), ("1" * 18, int("1" * 18))]
    + [(digits * "9", digits * "9") for digits in (19, 400, 5000)],
)
def test_a_number_stays_the_id_that_it_was(text, expected):
    assert number_or_text(text) == expected
