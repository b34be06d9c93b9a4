"""The script that flips bits in files of features says how libhdf5 took them."""

import sys

import pytest

from tools import bit_flips


@pytest.mark.slow
def test_every_file_is_counted(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["bit_flips", "--files", "2"])
    bit_flips.main()
    *_, summary = capsys.readouterr().out.splitlines()
    assert summary.startswith("2 files of ") and summary.endswith("libhdf5 came back")
