"""The tool that kills commands: nothing is wrong today, and a file that is written in place is reported."""

import re
from pathlib import Path

import pytest

from tools import kills


@pytest.mark.slow
def test_killed_commands_end_as_undisturbed_ones(capsys):
    assert kills.main(["--count", "4", "--seed", "1"]) == 0
    assert re.fullmatch(r"[4-6] kills in \d+ cases, 0 wrong, \d+ s\n", capsys.readouterr().out)


@pytest.fixture
def extraction(tmp_path):
    return kills.prepare(["features"], tmp_path)["features"]


def kill_before_each_call(command):
    """What is wrong after a kill before each call that changes files."""
    cases = [command.case([(kills.LIMIT, call)]) for call in range(1, command.calls + 1)]
    assert all(killed == 1 for killed, _ in cases) and len(cases) > 5
    return [wrong for _, wrong in cases]


@pytest.mark.slow
def test_an_extraction_survives_a_kill_before_every_call(extraction):
    assert not any(kill_before_each_call(extraction))


@pytest.mark.slow
def test_a_file_that_is_written_in_place_is_reported(extraction, monkeypatch):
    def write_in_place(self, target):
        content = self.read_bytes()
        Path(target).write_bytes(content[:100])
        with Path(target).open("ab") as file:  # a call before which it is killed
            file.write(content[100:])
        self.unlink()

    monkeypatch.setattr(Path, "replace", write_in_place)
    extraction.calls += 2
    wrong = kill_before_each_call(extraction)
    assert any("it ends with [-9, 1]" in text and "regions/part-00000.h5: not a part" in text for text in wrong), wrong
