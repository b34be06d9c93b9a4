"""Printed output: untrusted text cannot control a terminal, wide lines are fitted, a task's line keeps its counts."""

import io
import logging
import re

from mmgen.cli import Notes
from mmgen.progress import Bars, columns, fitted, number, table, tell

ODD = "\x1b[31mred\x1b[2J \x1b]8;;http://evil\x07link \u202eabc \x9b1m \x7f\r"
SPELT = r"\x1b[31mred\x1b[2J \x1b]8;;http://evil\x07link \u202eabc \x9b1m \x7f\r"


def test_everything_that_is_printed_is_printable(capsys):
    tell(f"a\n{ODD}")
    tell(ODD, err=True)
    assert capsys.readouterr() == (f"a\n{SPELT}\n", f"{SPELT}\n")


def test_a_log_is_printable(capsys):
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
    assert fitted(WIDE, 37) == NARROW
    assert max(map(len, fitted(WIDE, 5).splitlines())) == len("| step | relevance |")


def test_notes_around_a_table_are_wrapped():
    note, wrapped = "95 %: bootstrap over the examples' images", "95 %: bootstrap over the\nexamples' images"
    assert fitted(f"{note}\n\n{WIDE}\n\n{note}", 30) == f"{wrapped}\n\n{fitted(WIDE, 30)}\n\n{wrapped}"


def test_wide_letters_take_two_columns_and_marks_none():
    assert [columns(text) for text in ("a cat", "猫 が", "e\u0301", "می‌خواهم", "ﾈｺ", "💥")] == [5, 5, 1, 7, 2, 2]
    assert (
        table([["步骤", "BLEU-1"], ["both", "1.00"], ["看猫|图", "-"]])
        == """\
| 步骤     | BLEU-1 |
|----------|-------:|
| both     |   1.00 |
| 看猫\\|图 |      - |"""
    )


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_task_in_a_terminal_keeps_counts_and_times(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    bars = Bars()
    with bars.task("both_scratch: training", 64000, "questions", done=8000) as advance:
        advance(24000, f"loss 3.435 {ODD}")
        bars.say(WIDE)
    last = re.split(r"[\r\n]", terminal.getvalue().strip())[-1]
    assert last.split()[:3] == ["both_scratch:", "training", "32000/64000"] and "questions/s 00:00<00:0" in last
    assert f"loss 3.435 {SPELT}" in last and WIDE in terminal.getvalue()


def test_a_log_file_gets_a_line_now_and_then_and_the_last_once(monkeypatch, capsys):
    now = iter(range(0, 1000, 25))
    monkeypatch.setattr("mmgen.progress.time.monotonic", lambda: next(now))
    with Bars().task(f"scoring {ODD}", 3, "times") as advance:
        for _ in range(3):
            advance(1, ODD)
    lines = capsys.readouterr().out.splitlines()
    counts = ["1/3", "2/3", "3/3"]
    assert [line for line in lines if SPELT not in line] == [] and len(lines) == 3
    assert all(f" {count} " in line for count, line in zip(counts, lines, strict=True))


def test_a_cell_keeps_its_line_and_column():
    assert table([["a|b"], ["two\nlines"]]).split("\n") == ["| a\\|b      |", "|-----------|", "| two lines |"]


def test_numbers():
    assert [number(2 / 3), number(None), number(-0.004), number(-0.006)] == ["0.67", "-", "0.00", "-0.01"]
