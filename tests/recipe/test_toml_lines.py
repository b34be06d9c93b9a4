"""Line numbers of keys in TOML texts."""

import pytest

from mmgen.recipe.toml_lines import lines


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r"])
def test_a_line_ends_where_toml_ends_it(sign):
    assert lines(f"a = 1 # {sign} x\nb = '{sign}'\r\nc = 3\n") == {("a",): 1, ("b",): 2, ("c",): 3}


def test_lines_of_keys():
    text = 'a = 1\n[b]\nc = [\n  1, # x = 2\n]\nd = """\nnot = 1\n"""\n"e f" = 2\n[b.g]\nh.i = 3\n'
    assert lines(text) == {
        ("a",): 1,
        ("b",): 2,
        ("b", "c"): 3,
        ("b", "d"): 6,
        ("b", "e f"): 9,
        ("b", "g"): 10,
        ("b", "g", "h"): 11,
        ("b", "g", "h", "i"): 11,
    }
