"""A process that trains steps for a run: its lines go to the run's process."""

import multiprocessing
import os
import signal

import pytest

from mmgen.runs import training_process
from mmgen.runs.training_process import Spoken


def test_lines_are_sent(capsys):
    sent = []
    spoken = Spoken(sent.append)
    spoken.say("built on the spot")
    with spoken.task("training", 2, "pairs") as advance:
        advance(2)
    assert sent[0] == "built on the spot" and sent[1].startswith("training ") and "2/2" in sent[1]
    assert len(sent) == 2 and capsys.readouterr() == ("", "")


def test_a_process_whose_run_has_been_killed_ends_without_a_word(monkeypatch, capsys):
    monkeypatch.setattr(os, "setsid", lambda: None)
    monkeypatch.setattr(training_process, "_receive_steps", lambda *_: None)  # it would end this process
    monkeypatch.setattr(training_process, "train_ordered", lambda order, steps, send: send("a line of progress"))
    ours, theirs = multiprocessing.Pipe()
    ours.close()
    with pytest.raises(SystemExit) as ending:
        training_process.train_steps(None, theirs)
    assert ending.value.code == 1 and capsys.readouterr() == ("", "")


def test_what_a_library_makes_of_being_stopped_is_not_printed(monkeypatch, capsys):
    """pydantic makes an error of its own of a stop that comes while it builds a table."""

    def build(order, steps, send):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except KeyboardInterrupt as stop:
            raise RuntimeError(f"cannot build: {type(stop).__name__}") from stop

    monkeypatch.setattr(os, "setsid", lambda: None)
    monkeypatch.setattr(training_process, "_receive_steps", lambda *_: None)  # it would end this process
    monkeypatch.setattr(training_process, "train_ordered", build)
    theirs = multiprocessing.Pipe()[1]
    with pytest.raises(SystemExit) as ending:
        training_process.train_steps(None, theirs)
    assert ending.value.code == 1 and capsys.readouterr() == ("", "")
