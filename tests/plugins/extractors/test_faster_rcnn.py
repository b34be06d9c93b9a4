"""Faster R-CNN of torchvision as an extractor."""

import numpy as np
import pytest
import torch
from mmgen_extractors import FasterRcnn
from safetensors.torch import save_file

from mmgen.errors import DataError

pytestmark = pytest.mark.slow


def test_faster_rcnn(pictures, tmp_path):
    name = "fasterrcnn_mobilenet_v3_large_320_fpn"
    extractor = FasterRcnn(model=name, weights="random", max_regions=4).build()
    records = list(extractor.records(pictures))
    for record in records:
        assert record.features.shape == (4, 1024) and (np.diff(record.scores) <= 0).all()
        assert (
            record.boxes.min() >= 0 and record.boxes.max() <= 1 and (record.boxes[:, :2] <= record.boxes[:, 2:]).all()
        )
        assert record.classes.names == tuple(extractor.names[1:]) and record.classes.ids.shape == (4, 10)
        chances = extractor.model.roi_heads.box_predictor(torch.from_numpy(record.features))[0].softmax(-1)[:, 1:]
        assert np.allclose(record.classes.probabilities, chances.sort(descending=True).values[:, :10], atol=1e-5)
    # torchvision's own result, in pixels
    image = torch.from_numpy(np.array(pictures[1].load())).permute(2, 0, 1) / 255
    with torch.no_grad():
        (expected,) = extractor.model([image])
    assert np.allclose(expected["boxes"].numpy() / [60, 80, 60, 80], records[1].boxes, atol=1e-4)
    assert np.allclose(expected["scores"].numpy(), records[1].scores, atol=1e-5)
    save_file(extractor.model.state_dict(), tmp_path / "w.safetensors")
    again = FasterRcnn(model=name, weights=str(tmp_path / "w.safetensors"), max_regions=4).build()
    assert np.array_equal(next(iter(again.records(pictures[:1]))).features, records[0].features)
    assert again.fingerprint["digest"] == extractor.fingerprint["digest"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "fasterrcnn_x"}, "torchvision has no model 'fasterrcnn_x'; choose from: fasterrcnn_mobilenet"),
        ({"weights": "w.pth"}, 'weights \'w.pth\': must be "pretrained", "random" or a .safetensors file'),
        (
            {"weights": "w.safetensors"},
            "'fasterrcnn_resnet50_fpn_v2' with weights 'w.safetensors' cannot be loaded: No such file",
        ),
    ],
)
def test_faster_rcnn_that_cannot_be_had(settings, message):
    with pytest.raises(DataError) as error:
        FasterRcnn(**settings).build()
    assert str(error.value).startswith(message)
