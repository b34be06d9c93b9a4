"""Every part that mmgen provides passes its public suite: those whose suite stands nowhere else, and a walk over all
that are installed."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from kit import archives, arrays, stores
from mmgen_encoders import AnyEncoder, Bert, Roberta
from mmgen_extractors import BottomUpTsv, Detector, LxmertH5, NpzFolder, Roi, TimmGrid
from mmgen_inputs import Grid, Regions
from mmgen_metrics import CaptionScores, Diversity

import mmgen.testing
from mmgen.examples import Example
from mmgen.registry import installed
from mmgen.testing import EmbedderSuite, ExtractorSuite, MetricSuite

pytestmark = pytest.mark.slow

TESTS = Path(__file__).resolve().parents[1]


class Stored(EmbedderSuite):
    """An embedder of a store with images of two and three regions."""

    @pytest.fixture(autouse=True)
    def store(self, tmp_path):
        self.file = stores.fill(tmp_path / "s", [stores.record(str(count), count) for count in (2, 3)]).path

    def examples(self):
        return [Example("a", {"image": "2"}), Example("b", {"image": "3"})]


class TestRegions(Stored):
    def config(self):
        return Regions(features=self.file, fields=("image",), normalize="standard", extractor=Roi(image_size=64))


class TestGrid(Stored):
    def config(self):
        return Grid(features=self.file, fields=("image",))


class TestRoi(ExtractorSuite):
    def config(self):
        return Roi(model="test_resnet", image_size=64, spread=2, pool=1)


class TestTimmGrid(ExtractorSuite):
    def config(self):
        return TimmGrid(model="test_resnet", image_size=64, grid=2, pool=1)


class TestDetector(ExtractorSuite):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path):
        self.weights = archives.yolos(tmp_path / "yolos")

    def config(self):
        return Detector(model=str(self.weights), max_regions=3)


class Published(ExtractorSuite):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path):
        arrays.write(tmp_path)
        self.place = tmp_path

    def path(self):
        return self.place / self.file


class TestBottomUpTsv(Published):
    file = "f.tsv"

    def config(self):
        return BottomUpTsv()


class TestNpzFolder(Published):
    file = "arrays"

    def config(self):
        return NpzFolder()


class TestLxmertH5(Published):
    file = "f.h5"

    def config(self):
        return LxmertH5(index=self.place / "index.json")


class TestCaptionScores(MetricSuite):
    def config(self):
        return CaptionScores(meteor=False, tokenizer="own")


class TestDiversity(MetricSuite):
    def config(self):
        return Diversity()


def test_every_part_has_its_suite():
    """Every part of mmgen is named in the `config` of a class of tests/ that is a suite by name or by descent. Encoders
    are tried in test_suites.py, a family at a time; any others in test_any_encoder.py."""
    suites = {name: name for name in mmgen.testing.__all__ if name.endswith("Suite")}  # class -> its suite
    classes = [
        node
        for path in (*TESTS.rglob("test_*.py"), *(TESTS / "kit").glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    for node in classes * 3:  # those that descend from others are found later
        bases = (ast.unparse(base).rpartition(".")[2] for base in node.bases)
        suites.update((node.name, suites[base]) for base in bases if base in suites)
    tested = {
        (suites[node.name], word)
        for node in classes
        for method in node.body
        if node.name in suites and getattr(method, "name", "") == "config"
        for word in re.findall(r"\w+", ast.unparse(method))
    }
    tested |= {("BackboneSuite", family.__name__) for family in (Bert, Roberta, AnyEncoder)}
    tested.add(("BackboneSuite", "ModernVBert"))  # which kit/seeing.py builds
    ours = [part for part in installed().parts if part.source.distribution == "mmgen-framework"]
    without = [
        f"{part.kind} '{part.name}': no suite in tests/ whose config() is {part.config.__name__}"
        for part in ours
        if not {(f"{part.kind.title()}Suite", name) for name in (part.config.__name__, part.name)} & tested
    ]
    assert len(ours) > 25 and not without, "\n".join(without)
