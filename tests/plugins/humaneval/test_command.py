"""The command `mmgen judge`: options, tables, files, and mistakes in them."""

import json

import pytest
from kit.humaneval import answer, command, write, write_run
from mmgen_humaneval.systems import gather

from mmgen import RunError
from mmgen.registry import installed

pytestmark = pytest.mark.slow


def test_options_that_cannot_make_a_sheet_are_reported(run, tmp_path):
    out = tmp_path / "s.html"
    for arguments, message in (
        ((run, "--n", 9), "--n 9: only 8 test examples have a question by people"),
        ((run, "--step", "none"), "--step: no step 'none' has generated texts; choose from: zebrastep, quaggastep"),
        ((run, "--out", "s.txt"), "--out s.txt: file name must end in .html"),
        ((run, "--answer", "aim"), "--answer aim: example 'test-00000' has no text 'aim' among its inputs and facts"),
    ):
        result = command("make", "--out", out, *arguments, *(() if "--n" in arguments else ("--n", 2)))
        assert (result.exit_code, result.output) == (1, f"error: {message}\n")
    assert command("make", run, "--n", 2, "--out", out).exit_code == 0
    for left in (out, tmp_path / "s.json", tmp_path / "s.key.json"):
        result = command("make", run, "--n", 2, "--out", out)
        assert result.output == (
            f"error: {left}: already exists, and judges may be filling it; choose another name for --out, or delete "
            "it\n"
        )
        left.unlink()


def test_runs_on_one_sheet_have_different_names_and_one_test_set(tmp_path):
    small, large = write_run(tmp_path / "small/seed-0"), write_run(tmp_path / "large/seed-0", texts="why?")
    assert list(gather([small, large], ("quaggastep",), installed()).texts) == ["small/quaggastep", "large/quaggastep"]
    with pytest.raises(RunError, match="duplicate run; name each run once$"):
        gather([small, small], (), installed())
    with pytest.raises(RunError, match="its test examples differ from those of .*; all systems of a sheet must share"):
        gather([small, write_run(tmp_path / "other", test_size=7)], (), installed())


TABLES = """\
| system |  readability |     p |
|--------|-------------:|------:|
| model  | 2.75 ± 0.96  | 0.058 |
| human  | 4.25 ± 0.50  |     - |

| judge  | readability | alpha |
|--------|------------:|------:|
| first  |        3.43 |  0.67 |
| second |        3.43 |  0.67 |
| all    |           - |  0.67 |
"""


def test_the_command_prints_the_papers_table_and_that_of_the_judges(key, tmp_path):
    """Of the ratings that test_statistics.py counts by hand."""
    first = write(tmp_path / "first.json", answer("first", [1, 4, 2, 4, 3, 5, 5]))
    second = write(tmp_path / "second.json", answer("second", [3, 4, 2, 4, 3, 5, 3]))
    result = command("score", key, first, second, "--json", tmp_path / "o.json")
    assert result.exit_code == 0 and result.output.startswith(TABLES)
    saved = json.loads((tmp_path / "o.json").read_text())
    assert saved["systems"]["model"]["readability"]["mean"] == 2.75 and saved["missing"] == 0


@pytest.mark.parametrize(
    ("sheet", "message"),
    [
        (
            answer("first", [1, 4, 2, 4, 3, None, None]),
            ": 2 of 7 questions lack ratings (first: 3-2); complete the sheet, or use --partial",
        ),
        (answer("first", [1, 4, 2, 4, 3, 6, 1]), ": ratings.3-2.readability must be less than or equal to 5; give the"),
        (answer("first", [1] * 7, sheet="xyz"), ": belongs to another sheet than KEY; use matching files"),
    ],
)
def test_a_sheet_that_cannot_be_used_is_one_line(key, tmp_path, sheet, message):
    path = write(tmp_path / "a.json", sheet)
    result = command("score", key, path)
    assert result.exit_code == 1 and result.output.startswith(f"error: {path}{message.replace('KEY', str(key))}")
    assert result.output.count("\n") == 1
