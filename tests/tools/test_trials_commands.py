"""Commands with a time limit are killed with what they have started."""

import subprocess
import time

import pytest

from tools.trials import commands, forks, suite


def test_what_a_command_prints_is_returned(tmp_path):
    done = commands.run(["sh", "-c", "pwd; echo $WORD >&2; exit 3"], tmp_path, 60, {"WORD": "why"})
    assert (done.returncode, done.stdout, done.stderr) == (3, f"{tmp_path}\n", "why\n")


def test_a_command_that_hangs_is_killed_with_its_children(tmp_path):
    with pytest.raises(subprocess.TimeoutExpired):
        commands.run(["sh", "-c", "sleep 600 & touch begun; wait"], tmp_path, 2)
    until = time.monotonic() + 60
    while forks.processes_in(tmp_path) and time.monotonic() < until:
        time.sleep(0.01)
    assert (tmp_path / "begun").exists() and not forks.processes_in(tmp_path)


def test_tests_that_hang_are_wrong(tmp_path, monkeypatch):
    monkeypatch.setattr(suite, "LIMIT", 0.01)
    assert suite.tests([str(tmp_path)]).wrong == ("hangs for over 0.01 seconds",)
