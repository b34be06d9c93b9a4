"""Probes of a run: their folders, and their findings as text and as files."""

from typing import Literal

import pytest
import torch

import mmgen
from mmgen.errors import DataError, RunError
from mmgen.evaluation import probes
from mmgen.parts import Probe, ProbeResult


class Draws(mmgen.ProbeConfig):
    """Draws a number."""

    type: Literal["draws"] = "draws"
    fails: bool = False

    def build(self):
        return DrawsProbe(self.fails)


class DrawsProbe(Probe):
    def __init__(self, fails):
        self.fails = fails

    def run(self, subject, out):
        (out / "raw.txt").write_text(str(float(torch.rand(1))))
        if self.fails:
            raise DataError("no examples")
        return ProbeResult({"Numbers": [["step", "share"], ["first", 0.25]]}, {}, ("one note",))


def test_a_probe_writes_its_findings_and_a_failing_one_leaves_its_earlier_files(tmp_path):
    first = probes.probe({"numbers": Draws()}, None, tmp_path, seed=1)
    assert first["numbers"] == probes.read(tmp_path)["numbers"]
    drawn = (tmp_path / "numbers/raw.txt").read_text()
    again = probes.probe({"numbers": Draws(), "broken": Draws(fails=True)}, None, tmp_path, seed=1)
    assert (tmp_path / "numbers/raw.txt").read_text() == drawn  # seeded by the run and the probe's name
    assert isinstance(again["broken"], DataError) and not (tmp_path / "broken").exists()
    probes.probe({"numbers": Draws(fails=True)}, None, tmp_path, seed=2)
    assert (tmp_path / "numbers/raw.txt").read_text() == drawn and [*probes.read(tmp_path)] == ["numbers"]
    tables = (tmp_path / "numbers/tables.md").read_text()
    assert tables.startswith("Numbers\n\n| step") and tables.endswith("\n\none note\n")


def test_damaged_findings(tmp_path):
    (tmp_path / "numbers").mkdir()
    (tmp_path / "numbers/findings.json").write_text('{"tables": {}, "plots": []}')
    with pytest.raises(RunError, match=r"findings.json: damaged: 'plots' is \[\]"):
        probes.read(tmp_path)
