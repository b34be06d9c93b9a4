"""Every part that mmgen provides passes its public suite: those whose suite stands nowhere else, and a walk over all
that are installed."""

from __future__ import annotations

import ast
import base64
import json
import re
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
import transformers
from mmgen_encoders import AnyEncoder, Bert, Roberta
from mmgen_extractors import BottomUpTsv, Detector, LxmertH5, NpzFolder, Roi, TimmGrid
from mmgen_inputs import Grid, Regions
from mmgen_metrics import CaptionScores, Diversity

import mmgen.testing
from mmgen.examples import Example
from mmgen.features.writer import StoreWriter
from mmgen.parts import Record
from mmgen.registry import installed
from mmgen.testing import EmbedderSuite, ExtractorSuite, MetricSuite

pytestmark = pytest.mark.slow

TESTS = Path(__file__).resolve().parents[1]
RNG = np.random.default_rng(0)
BOXES = np.array([[0, 0, 0.5, 0.5], [0.1, 0.25, 1, 1], [0.5, 0.5, 0.6, 0.6]], np.float32)
PIXELS = BOXES * [100, 80, 100, 80]  # of an image of 100 x 80
FEATURES = RNG.random((3, 3, 5), np.float32)


class Stored(EmbedderSuite):
    """An embedder of a store with images of two and three regions."""

    @pytest.fixture(autouse=True)
    def store(self, tmp_path):
        self.file = tmp_path / "s.h5"
        with StoreWriter(self.file, {"extractor": "made"}) as writer:
            for count in (2, 3):
                writer.add(Record(str(count), FEATURES[0][:count], BOXES[:count]))

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


@pytest.fixture(scope="module")
def detr(tmp_path_factory):
    """A small DETR with random weights."""
    folder = tmp_path_factory.mktemp("detr")
    backbone = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8] * 4, depths=[1] * 4, layer_type="basic", out_features=["stage4"]
    )
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2}
    sizes |= {"decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "num_queries": 6}
    plain = {"use_timm_backbone": False, "backbone": None, "use_pretrained_backbone": False, "num_labels": 5}
    torch.manual_seed(0)
    config = transformers.DetrConfig(backbone_config=backbone, **sizes, **plain)
    transformers.DetrForObjectDetection(config).save_pretrained(folder)
    size = {"shortest_edge": 64, "longest_edge": 96}
    transformers.DetrImageProcessor(size=size).save_pretrained(folder)
    return folder


class TestDetector(ExtractorSuite):
    @pytest.fixture(autouse=True)
    def folder(self, detr):
        self.weights = detr

    def config(self):
        return Detector(model=str(self.weights), max_regions=3)


class Published(ExtractorSuite):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path):
        self.folder_path = tmp_path

    def path(self):
        return self.folder_path / "f"


class TestBottomUpTsv(Published):
    def config(self):
        return BottomUpTsv()

    def path(self):
        def b64(values):
            return base64.b64encode(np.asarray(values, "<f4").tobytes()).decode()

        rows = [[key, 100, 80, 3, b64(PIXELS), b64(features)] for key, features in enumerate(FEATURES)]
        (self.folder_path / "f.tsv").write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
        return self.folder_path / "f.tsv"


class TestNpzFolder(Published):
    def config(self):
        return NpzFolder()

    def path(self):
        (self.folder_path / "f").mkdir(exist_ok=True)
        for key, features in enumerate(FEATURES):
            np.savez(
                self.folder_path / "f" / f"{key}.npz", x=features, bbox=PIXELS, num_bbox=3, image_w=100, image_h=80
            )
        return self.folder_path / "f"


class TestLxmertH5(Published):
    def config(self):
        (self.folder_path / "index.json").write_text(json.dumps({str(key): key for key in range(3)}))
        return LxmertH5(index=self.folder_path / "index.json")

    def path(self):
        spatial = np.concatenate([BOXES, BOXES[:, 2:] - BOXES[:, :2]], 1)
        with h5py.File(self.folder_path / "f.hdf5", "w") as file:
            file["image_features"], file["image_bb"] = FEATURES, np.stack([PIXELS] * 3)
            file["spatial_features"] = np.stack([spatial] * 3)
        return self.folder_path / "f.hdf5"


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
