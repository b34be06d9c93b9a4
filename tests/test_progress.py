"""Printed output: untrusted text cannot control a terminal, wide lines are fitted, a task's line keeps its counts."""

import ast
import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from mmgen import progress
from mmgen.errors import printable
from mmgen.progress import Bars, clock, columns, fitted, number, table, tell

ROOT = Path(__file__).resolve().parents[1]
ODD = "\x1b[31mred\x1b[2J \x1b]8;;http://evil\x07link \u202eabc \x9b1m \x7f\r"
SPELT = r"\x1b[31mred\x1b[2J \x1b]8;;http://evil\x07link \u202eabc \x9b1m \x7f\r"


def test_controls_are_spelt_out_and_letters_stay():
    assert printable(ODD) == SPELT and printable(SPELT) == SPELT
    assert printable("half \ud83d a\u2028b\tc") == r"half \ud83d a\u2028b\tc"
    letters = "naïve 猫　が\nمی‌خواهم 👩‍👧 10\u00a0%"
    assert printable(letters) == letters


def test_everything_that_is_printed_is_printable(capsys):
    tell(f"a\n{ODD}")
    tell(ODD, err=True)
    assert capsys.readouterr() == (f"a\n{SPELT}\n", f"{SPELT}\n")
    bars, shown = Bars(), io.StringIO()
    bars.console = Console(file=shown, width=500)
    bars.say(ODD)
    with bars.task(f"features: {ODD}", 1, "images") as advance:
        advance(1, ODD)
    first, second = shown.getvalue().splitlines()
    assert first == SPELT and second.count(SPELT) == 2


def test_nothing_is_printed_past_it():
    """In mmgen's own code; messages of dependencies go through the log, which is printable too."""
    for path in (path for folder in ("mmgen", "plugins", "examples") for path in (ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if path == ROOT / "mmgen/progress.py" or not re.search(r"(print|echo|write)\(", text):
            continue
        called = {ast.unparse(node.func) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)}
        printing = {"print", "click.echo", "click.secho", "sys.stdout.write", "sys.stderr.write"}
        assert not called & printing, f"{path}: use mmgen.progress.tell"


def test_a_log_is_printable(capsys):
    import logging

    from mmgen.cli import Notes

    Notes().handle(logging.LogRecord("mmgen", logging.INFO, "", 1, "%s: skipped", (ODD,), None))
    assert capsys.readouterr().err == f"{SPELT}: skipped\n"


WIDE = table([["step", "BLEU-1", "BLEU-2", "relevance"], ["both", "1.00", "2.00", "3.00"]])
NARROW = """\
| step | BLEU-1 | BLEU-2 |
|------|-------:|-------:|
| both |   1.00 |   2.00 |

| step | relevance |
|------|----------:|
| both |      3.00 |"""


def test_a_table_too_wide_stands_in_pieces():
    assert fitted(WIDE, None) == fitted(WIDE, 80) == fitted(WIDE, 38) == WIDE
    assert fitted(WIDE, 37) == fitted(WIDE, 37, wrap=False) == NARROW
    assert max(map(len, fitted(WIDE, 5).splitlines())) == len("| step | relevance |")


def test_columns_of_words_begin_every_piece():
    two = table([["step", "run", "A", "B"], ["both", "one", "1", "2"]], texts=2)
    assert fitted(two, 20).splitlines()[::2] == ["| step | run | A |", "| both | one | 1 |", "| step | run | B |"] + [
        "| both | one | 2 |"
    ]
    words = table([["a", "b"], ["x" * 9, "y" * 9]], texts=2)
    assert fitted(words, 10) == words


def test_wide_letters_take_two_columns_and_marks_none():
    assert [columns(text) for text in ("a cat", "猫 が", "e\u0301", "می‌خواهم", "ﾈｺ", "💥")] == [5, 5, 1, 7, 2, 2]
    rows = [["步骤", "BLEU-1", "相关"], ["both", "1.00", "2.00"], ["看猫|图", "-", "3.00"]]
    wide = """\
| 步骤     | BLEU-1 | 相关 |
|----------|-------:|-----:|
| both     |   1.00 | 2.00 |
| 看猫\\|图 |      - | 3.00 |"""
    assert table(rows) == wide
    pieces = fitted(wide, 21).split("\n\n")
    assert [piece.splitlines()[-1] for piece in pieces] == ["| 看猫\\|图 |      - |", "| 看猫\\|图 | 3.00 |"]


def test_lines_are_broken_between_words():
    assert fitted("    one two three four", 20) == "    one two three\n      four"
    assert fitted("    one two three four", 20, wrap=False) == "    one two three four"
    assert fitted("/a/path/that/has/no/blanks", 14) == "/a/path/that/has/no/blanks"


def test_where_there_is_no_terminal_lines_are_of_any_length(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("COLUMNS", "37")
    assert (progress.width(io.StringIO()), progress.width(None), progress.width(Terminal())) == (None, None, 37)


TEXT = "loss 3.435, validation 3.445"


def shown(width: int, label: str, total: int | None, steps: tuple[int, ...], unit: str = "", text: str = "") -> str:
    """A task's last line in a terminal of this width; each step takes a minute."""
    now, terminal, bars = [0.0], io.StringIO(), Bars()
    bars.console = Console(
        file=terminal,
        force_terminal=True,
        color_system=None,
        width=width,
        get_time=lambda: now[0],
        legacy_windows=False,
    )
    with bars.task(label, total, unit) as advance:
        for count in steps:
            now[0] += 60
            advance(count, text)
    return terminal.getvalue().rsplit("\x1b[2K", 1)[1].partition("\n")[0].rstrip()


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (60, f"caption: training 1200/4800 0:02:00 06:00 {TEXT[:17]}"),
        (80, f"caption: training 1200/4800 0:02:00 06:00 {TEXT}"),
        (120, f"caption: training 1200/4800 0:02:00 06:00 {TEXT} ━━━━"),
    ],
)
def test_a_task_keeps_count_time_passed_and_time_left(width, line):
    assert shown(width, "caption: training", 4800, (600, 600), "questions", TEXT).startswith(line)


def test_times_are_never_rounded_away():
    assert [clock(seconds) for seconds in (0.4, 59.6, 750, 3723)] == ["0:00", "1:00", "12:30", "1:02:03"]


def test_a_terminal_of_80_columns_shows_the_line_whole():
    bars, shown = Bars(), io.StringIO()
    bars.console = Console(file=shown, force_terminal=True, color_system=None, width=80)
    with bars.task("both_scratch: training", 64000, "questions") as advance:
        advance(32000, TEXT)
    last = shown.getvalue().rstrip("\x1b[?25hl\n").splitlines()[-1]
    assert "both_scratch: training 32000/64000 0:00:00" in last and "loss 3.435" in last and "…" not in last
    bars.say(WIDE + " " * 60)
    assert max(map(len, shown.getvalue().splitlines()[-3:])) <= 80


def test_a_log_file_gets_the_last_line_once(monkeypatch):
    now = iter(range(0, 1000, 25))
    monkeypatch.setattr("mmgen.progress.time.monotonic", lambda: next(now))
    bars, shown = Bars(), io.StringIO()
    bars.console = Console(file=shown, width=80)
    with bars.task("scoring", 2, "times") as advance:
        advance(1)
        advance(1)
    first, last = shown.getvalue().splitlines()
    assert first.split() == ["scoring", "1/2", "0.0133", "times/s", "75", "s,", "1:15", "left"]
    assert last.split()[:2] == ["scoring", "2/2"]


def test_columns_stand_under_one_another():
    assert table([["step", "value"], ["both", "87.50"], ["image_frozen", "-"]]).split("\n") == [
        "| step         | value |",
        "|--------------|------:|",
        "| both         | 87.50 |",
        "| image_frozen |     - |",
    ]
    assert table([["step", "run", "n"], ["a", "b", "10"]], texts=2).split("\n") == [
        "| step | run |  n |",
        "|------|-----|---:|",
        "| a    | b   | 10 |",
    ]


def test_a_cell_keeps_its_line_and_column():
    assert table([["a|b"], ["two\nlines"]]).split("\n") == ["| a\\|b      |", "|-----------|", "| two lines |"]


def test_numbers():
    assert [number(2 / 3), number(None), number(-0.004), number(-0.006)] == ["0.67", "-", "0.00", "-0.01"]
