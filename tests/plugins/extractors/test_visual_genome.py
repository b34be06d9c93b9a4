"""The Faster R-CNN of Visual Genome: a tiny random one, compared step by step."""

import numpy as np
import pytest
import torch
from kit import frcnn
from mmgen_extractors import VisualGenome
from mmgen_extractors.visual_genome import resized
from mmgen_extractors.visual_genome_network import STRIDE
from torchvision.ops import nms, roi_pool

from mmgen.errors import DataError
from mmgen.testing import ExtractorSuite


@pytest.fixture(scope="module")
def extractor(published, small_settings):
    return VisualGenome(weights=published, max_regions=6).build()


class TestVisualGenome(ExtractorSuite):
    @pytest.fixture(autouse=True)
    def _weights(self, published):
        self.folder = published

    def config(self):
        return VisualGenome(weights=self.folder, max_regions=4)


def test_a_region_has_an_attribute_and_a_class(extractor, pictures):
    (record,) = extractor.records(pictures[:1])
    attributes, names = zip(*(name.split() for name in record.region_names), strict=True)
    assert {*attributes} <= {"red", "green", "old"} and {*names} <= {*record.classes.names}
    assert record.classes.names == ("cat", "dog", "tree", "ball", "car") and (np.diff(record.scores) <= 0).all()


def test_features_are_the_last_stage_over_each_box_before_it_moves(extractor, pictures):
    """The original code pools over the proposals, and reports the moved boxes."""
    network, image = extractor.network, pictures[0].load()
    pixels = resized(image, network.settings)
    assert pixels.shape == (3, 96, 128)
    red = np.asarray(image).astype(np.float32)[..., 0]
    assert abs(pixels[2].mean().item() + 122.77 - red.mean()) < 1  # red is last
    with torch.no_grad():
        maps = network._maps(pixels.unsqueeze(0))
        assert maps.shape == (1, 32, 6, 8)
        proposals = network._proposals(maps, (96, 128))
        assert len(proposals) <= 40 and (
            nms(proposals, torch.arange(len(proposals), 0, -1.0), 0.7).sort().values
        ).equal(torch.arange(len(proposals)))
        pooled = roi_pool(maps, [proposals], 4, 1 / STRIDE)
        features = network.stage("roi_heads.res5", pooled, dilation=2)
        assert features.shape[2:] == (4, 4)  # dilated, not halved
        features = features.mean((2, 3))
        logits = network.linear("cls_score", features)
        deltas = network.linear("bbox_pred", features)
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
    (record,) = extractor.records(pictures[:1])
    assert np.allclose(record.features, features[keep], atol=1e-5)
    assert np.allclose(record.boxes * [128, 96, 128, 96], boxes[keep], atol=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda folder: (folder / "objects_vocab.txt").write_text("cat\n"),
            "objects_vocab.txt: has 1 names, but the network has 5 classes",
        ),
        (lambda folder: torch.save({"a": torch.zeros(1)}, folder / "pytorch_model.bin"), "not the Faster R-CNN of"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, change, message):
    folder = frcnn.published(tmp_path / "published")
    change(folder)
    with pytest.raises(DataError) as error:
        VisualGenome(weights=folder).build()
    assert str(folder) in str(error.value) and message in str(error.value) and "\n" not in str(error.value)
