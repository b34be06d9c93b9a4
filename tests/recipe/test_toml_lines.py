"""Line numbers of keys in TOML texts; keys with too many names."""

import pytest
from kit.recipes import mistakes

from mmgen.recipe.toml_lines import lines

DEEP = ".".join("a" * 50_000)


@pytest.mark.parametrize(
    "line", [f"{DEEP} = 1", f"[{DEEP}]", f"x = {{ y = 1, {DEEP} = 1 }}", f'x = """\n"""\n{DEEP}=1']
)
def test_a_key_of_names_without_end_is_reported_at_once(tmp_path, line):
    (tmp_path / "r.toml").write_text(f'name = "r"\n{line}\n')
    place = 4 if "\n" in line else 2
    assert mistakes(tmp_path / "r.toml") == [
        f"{tmp_path}/r.toml:{place}: a key has more than 32 names separated by dots; keys of a recipe have fewer"
    ]


def test_a_text_with_many_dots_is_no_key(tmp_path):
    """32 names are not too many."""
    text = f'description = """\n{"." * 99}\n{DEEP[:200]}\n"""\n{".".join("a" * 32)} = 1\n'
    (tmp_path / "r.toml").write_text(text)
    assert "has more than" not in " ".join(mistakes(tmp_path / "r.toml"))


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
