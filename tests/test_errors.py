"""Errors as people see them: printable, in lines of limited length."""

import pytest

from mmgen.errors import DataError, did_you_mean, printable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain: größer, 日本語 🙂", "plain: größer, 日本語 🙂"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("abc\u202edef", "abc\\u202edef"),  # a change of direction
        ("half \ud800", "half \\ud800"),
        ("two\nlines", "two\nlines"),
        ("\u0646\u200c\u0645", "\u0646\u200c\u0645"),  # a joiner inside a word
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
