"""Probes of a run: their folders, and their findings as text and as files."""

from typing import Literal

import torch

import mmgen
from mmgen.evaluation import probes
from mmgen.parts import Probe, ProbeResult


class Draws(mmgen.ProbeConfig):
    """Draws a number."""

    type: Literal["draws"] = "draws"

    def build(self):
        return DrawsProbe()


class DrawsProbe(Probe):
    def run(self, subject, out):
        (out / "raw.txt").write_text(str(float(torch.rand(1))))
        return ProbeResult({"Numbers": [["step", "share"], ["first", 0.25]]}, {}, ("one note",))


def test_a_probe_writes_its_findings(tmp_path):
    for folder, seed in (("numbers", 1), ("again", 1), ("other", 2)):
        (tmp_path / folder).mkdir()
        findings = probes.run_probe(Draws(), "numbers", None, seed, tmp_path / folder)
    drawn = [(tmp_path / folder / "raw.txt").read_text() for folder in ("numbers", "again", "other")]
    assert drawn[0] == drawn[1] != drawn[2]  # seeded by the run and the probe's name
    assert probes.read(tmp_path)["numbers"] == findings
    tables = (tmp_path / "numbers/tables.md").read_text()
    assert tables.startswith("Numbers\n\n| step") and tables.endswith("\n\none note\n")
