"""Fake programs in place of Java."""

import stat
import sys

from mmgen.examples import Example, Generation


def pairs(*rows):
    """(text, reference, ...) rows as generations and examples."""
    generations = [Generation(str(i), text, (), 0.0) for i, (text, *_) in enumerate(rows)]
    return generations, [Example(str(i), {}, tuple(references)) for i, (_, *references) in enumerate(rows)]


def fake_java(folder, monkeypatch, body):
    """A program called java, alone on the PATH."""
    program = folder / "java"
    program.write_text(f"#!{sys.executable}\nimport sys, time\n{body}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(folder))


COUNTS = {  # the program's SCORE counts and its EVAL scores
    "7 4 3 2 2 2 2 2 0 0 0 0 0 0 0 0 0 0 0 0 3 4 4": 0.38324640284911277,
    "4 5 1 2 0 0 1 1 1 1 0 0 0 0 0 0 1 1 0 0 1 3 3": 0.21976343682412564,
    "6 6 3 3 1 1 3 3 0 0 0 0 2 2 0 0 0 0 0 0 1 6 6": 0.8999999999999999,
    "1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0": 0.0,
    "5 3 2 1 2 2 1 1 0 0 0 0 0 0 0 0 0 0 0 0 1 3 3": 0.47743229481671456,
    "2 2 0 0 2 2 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 2 2": 1.0,
}
