"""The Faster R-CNN of Visual Genome: a tiny random one in the published form, converted, and compared step by step."""

import json

import numpy as np
import pytest
import torch
import yaml
from click.testing import CliRunner
from mmgen_frcnn import VisualGenome
from mmgen_frcnn.command import settings
from mmgen_frcnn.extractor import load, resized
from mmgen_frcnn.network import STRIDE, Settings
from PIL import Image
from torchvision.ops import nms, roi_pool

from mmgen.cli import main
from mmgen.errors import DataError
from mmgen.parts import Picture
from mmgen.testing import ExtractorSuite

CONFIG = {
    "MODEL": {"PIXEL_MEAN": [100.0, 110.0, 120.0], "PIXEL_STD": [1.0, 1.0, 1.0], "MAX_POOL": True},
    "INPUT": {"MIN_SIZE_TEST": 96, "MAX_SIZE_TEST": 160},
    "RPN": {"PRE_NMS_TOPK_TEST": 60, "POST_NMS_TOPK_TEST": 40, "NMS_THRESH": 0.7},
    "ROI_HEADS": {"NMS_THRESH_TEST": [0.5, 0.6]},
    "ROI_BOX_HEAD": {"POOLER_RESOLUTION": 4, "RES5HALVE": False},
    "MIN_DETECTIONS": 4,
}


def weights(seed=0):
    """Tensors by the published names: every stage one block or two, few channels, 5 classes, 3 attributes."""
    torch.manual_seed(seed)
    tensors = {}

    def convolution(name, out, into, size):
        tensors[f"{name}.weight"] = torch.randn(out, into, size, size) / (into * size * size) ** 0.5
        for part, values in (("weight", torch.ones(out)), ("bias", torch.zeros(out))):
            tensors[f"{name}.norm.{part}"] = values
        tensors[f"{name}.norm.running_mean"] = torch.randn(out) * 0.1
        tensors[f"{name}.norm.running_var"] = torch.rand(out) + 0.5
        tensors[f"{name}.norm.num_batches_tracked"] = torch.tensor(1)

    def stage(name, into, inner, out, count):
        for number in range(count):
            convolution(f"{name}.{number}.conv1", inner, into, 1)
            convolution(f"{name}.{number}.conv2", inner, inner, 3)
            convolution(f"{name}.{number}.conv3", out, inner, 1)
            if into != out:
                convolution(f"{name}.{number}.shortcut", out, into, 1)
            into = out

    def linear(name, out, into, *size):
        tensors[f"{name}.weight"] = torch.randn(out, into, *size) * 0.3 / into**0.5
        tensors[f"{name}.bias"] = torch.randn(out) * 0.1

    convolution("backbone.stem.conv1", 4, 3, 7)
    stage("backbone.res2", 4, 4, 8, 1)
    stage("backbone.res3", 8, 4, 16, 2)
    stage("backbone.res4", 16, 8, 32, 1)
    stage("roi_heads.res5", 32, 8, 64, 2)
    head = "proposal_generator.rpn_head."
    linear(f"{head}conv", 12, 32, 3, 3)
    linear(f"{head}objectness_logits", 4, 12, 1, 1)
    linear(f"{head}anchor_deltas", 16, 12, 1, 1)
    sides = torch.tensor([[16.0, 32.0], [32.0, 16.0], [40.0, 40.0], [64.0, 64.0]]) / 2
    tensors["proposal_generator.anchor_generator.cell_anchors.0"] = torch.cat([-sides, sides], 1)
    predictor = "roi_heads.box_predictor."
    linear(f"{predictor}cls_score", 6, 64)
    linear(f"{predictor}bbox_pred", 20, 64)
    tensors[f"{predictor}cls_embedding.weight"] = torch.randn(6, 8)
    linear(f"{predictor}fc_attr", 16, 72)
    linear(f"{predictor}attr_score", 4, 16)
    return tensors


def published(folder, **config):
    folder.mkdir()
    torch.save(weights(), folder / "pytorch_model.bin")
    (folder / "config.yaml").write_text(yaml.safe_dump({**CONFIG, **config}))
    (folder / "objects_vocab.txt").write_text("cat\ndog,puppy\ntree\nball\ncar\n")
    (folder / "attributes_vocab.txt").write_text("red\ngreen\nold\n")
    return folder


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frcnn")
    path = folder / "vg.safetensors"
    done = CliRunner().invoke(main, ["frcnn", str(published(folder / "published")), str(path)])
    assert done.exit_code == 0 and done.output == f"{path}: {len(weights())} tensors\n", done.output
    return path


def picture(key="p", size=(120, 90), seed=0):
    pixels = np.random.default_rng(seed).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    return Picture(key, lambda: Image.fromarray(pixels))


@pytest.fixture(scope="module")
def extractor(converted):
    return VisualGenome(weights=converted, max_regions=6).build()


class TestVisualGenome(ExtractorSuite):
    @pytest.fixture(autouse=True)
    def _weights(self, converted):
        self.path = converted

    def config(self):
        return VisualGenome(weights=self.path, max_regions=4)


def test_regions_of_a_picture(extractor):
    (record,) = extractor.records([picture()])
    assert record.features.shape == (6, 64) and record.boxes.shape == (6, 4)
    assert (np.diff(record.scores) <= 0).all() and record.boxes.min() >= 0 and record.boxes.max() <= 1
    words = [name.split(" ") for name in record.region_names]
    assert all(a in ("red", "green", "old") and b in ("cat", "dog", "tree", "ball", "car") for a, b in words)
    assert record.classes.names == ("cat", "dog", "tree", "ball", "car") and record.classes.error(6) == ""
    assert extractor.fingerprint["license"] == "unknown"
    (again, second) = extractor.records([picture(), picture("q", (60, 200), 1)])
    assert np.array_equal(again.features, record.features) and second.key == "q"


def test_features_are_the_last_stage_over_each_box_before_it_moves(extractor):
    """The original code pools over the proposals, and reports the moved boxes."""
    network, image = extractor.network, picture().load()
    pixels = resized(image, network.settings)
    assert pixels.shape == (3, 96, 128)
    red = np.asarray(image).astype(np.float32)[..., 0]
    assert abs(pixels[2].mean().item() + 120 - red.mean()) < 1  # red is last
    with torch.no_grad():
        maps = network._maps(pixels.unsqueeze(0))
        assert maps.shape == (1, 32, 6, 8)
        proposals = network._proposals(maps, (96, 128))
        assert len(proposals) <= 40 and (
            nms(proposals, torch.arange(len(proposals), 0, -1.0), 0.7).sort().values
        ).equal(torch.arange(len(proposals)))
        pooled = roi_pool(maps, [proposals], 4, 1 / STRIDE)
        features = network.roi_heads["res5"](pooled)
        assert features.shape[2:] == (4, 4)  # dilated, not halved
        features = features.mean((2, 3))
        logits = network.roi_heads["box_predictor"]["cls_score"](features)
        deltas = network.roi_heads["box_predictor"]["bbox_pred"](features)
    scores, classes = logits.softmax(-1)[:, :5].max(1)
    boxes = []
    for delta, label, box in zip(deltas.tolist(), classes.tolist(), proposals.tolist(), strict=True):
        dx, dy, dw, dh = delta[4 * label : 4 * label + 4]
        width, height = box[2] - box[0], box[3] - box[1]
        x, y = box[0] + width / 2 + dx / 10 * width, box[1] + height / 2 + dy / 10 * height
        width, height = width * np.exp(dw / 5), height * np.exp(dh / 5)
        corners = [x - width / 2, y - height / 2, x + width / 2, y + height / 2]
        boxes.append([min(max(side, 0), most) for side, most in zip(corners, (128, 96, 128, 96), strict=True)])
    boxes = torch.tensor(boxes, dtype=torch.float32)
    keep = nms(boxes, scores, 0.5)[:6]
    (record,) = extractor.records([picture()])
    if len(keep) >= 4:
        assert np.allclose(record.features[: len(keep)], features[keep].numpy(), atol=1e-5)
        assert np.allclose(record.boxes * [128, 96, 128, 96], boxes[keep].numpy(), atol=1e-3)


def test_an_anchor_is_at_every_place_of_the_maps(extractor):
    anchors = extractor.network._anchors(torch.zeros(1, 32, 2, 3))
    assert anchors.shape == (2 * 3 * 4, 4)
    assert anchors[4 * (3 + 2)].tolist() == [2 * 16 - 8, 16 - 16, 2 * 16 + 8, 16 + 16]


def test_settings_are_those_of_the_file(converted, tmp_path):
    about = load(converted)[1]
    assert about["settings"]["min_size"] == 96 and about["settings"]["overlaps"] == [0.5, 0.6]
    assert about["settings"]["box_weights"] == [10.0, 10.0, 5.0, 5.0]  # the default
    folder = published(tmp_path / "other", ROI_HEADS={"NMS_THRESH_TEST": 0.3})
    assert settings(folder / "config.yaml")["overlaps"] == [0.3]
    (folder / "config.yaml").write_text("a: [")
    with pytest.raises(
        DataError, match="config.yaml: not valid YAML; use the config.yaml beside the published weights"
    ):
        settings(folder / "config.yaml")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda folder: (folder / "config.yaml").unlink(),
            "config.yaml: No such file or directory; use the config.yaml",
        ),
        (
            lambda folder: (folder / "objects_vocab.txt").write_text("cat\n"),
            "has 1 names, but the network has 5 classes",
        ),
        (lambda folder: torch.save({"a": torch.zeros(1)}, folder / "pytorch_model.bin"), "not the Faster R-CNN of"),
        (lambda folder: torch.save({"a": Settings()}, folder / "pytorch_model.bin"), "could execute arbitrary code"),
    ],
)
def test_files_that_cannot_be_converted(tmp_path, change, message):
    folder = published(tmp_path / "published")
    change(folder)
    done = CliRunner().invoke(main, ["frcnn", str(folder), str(tmp_path / "vg.safetensors")])
    assert done.exit_code == 1 and message in done.output, done.output


def test_a_file_that_is_missing_or_something_else(tmp_path):
    with pytest.raises(DataError, match=r"vg.safetensors: missing; convert the published files with `mmgen frcnn`"):
        VisualGenome(weights=tmp_path / "vg.safetensors").build()
    (tmp_path / "vg.safetensors").write_bytes(b"nothing")
    with pytest.raises(DataError, match="convert the published files again with `mmgen frcnn`"):
        VisualGenome(weights=tmp_path / "vg.safetensors").build()


def test_an_export_has_the_network(extractor, tmp_path):
    extractor.save(tmp_path)
    loaded = VisualGenome(weights="elsewhere", max_regions=6).load(tmp_path)
    assert json.dumps(loaded.fingerprint) == json.dumps(extractor.fingerprint)
    (before,), (after,) = extractor.records([picture()]), loaded.records([picture()])
    assert np.array_equal(before.features, after.features) and before.region_names == after.region_names
