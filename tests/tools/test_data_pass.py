"""The script that measures the walk through made-up examples before the first update."""

import re
import sys

import pytest

from tools import data_pass


def test_examples_are_made_when_asked_for():
    split = data_pass.MadeUp(examples=1_000_000, alternatives=2).build().split("train")
    assert len(split) == 1_000_000 and split[999_999] == split[999_999] != split[3]
    assert len(split[7].inputs["caption"]) == 2 and len(split[7].targets[0].split()) == 6
    with pytest.raises(IndexError):
        split[1_000_000]


@pytest.mark.slow
def test_two_starts_are_measured(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["data_pass", "--examples", "11000"])  # so many that their sizes are kept
    data_pass.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines if line.endswith(" s") and line.count(":") == 1] == [
        "making every example and tokenising its texts",
        "first start",
        "second start",
    ]
    assert re.search(r"a plan holds 9\.\d bytes for each example and epoch", lines[-1])
