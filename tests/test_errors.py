"""Errors as people see them: printable, in lines of limited length."""

import pytest

from mmgen.errors import DataError, did_you_mean, printable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x07\r", "\\x1b[31mred\\x07\\r"),
        ("abc\u202edef \x9b1m", "abc\\u202edef \\x9b1m"),  # a change of direction
        ("half \ud800 a\u2028b\tc", "half \\ud800 a\\u2028b\\tc"),
        ("two\nlines: größer, 日本語 猫　が 🙂 می‌خواهم 👩‍👧 10\u00a0%",) * 2,  # joiners inside words
    ],
)
def test_control_characters_are_escaped(text, expected):
    assert printable(text) == str(DataError(text)) == expected


def test_long_lines_are_cut_in_the_middle():
    text = str(DataError("a" * 900 + "\n" + "b" * 3))
    assert text == "a" * 400 + " [...] " + "a" * 400 + "\nbbb"


def test_a_close_name_is_suggested():
    assert did_you_mean("captoin", ["image", "caption"]) == "; did you mean 'caption'?"
    assert did_you_mean("x", ["image", "caption"]) == ""
