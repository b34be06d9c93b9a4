"""Detectors as extractors: small random ones of transformers and torchvision."""

import json

import numpy as np
import pytest
import torch
import transformers
from mmgen_extractors import Detector
from torchvision.ops import box_convert

pytestmark = pytest.mark.slow


SIZE = {"shortest_edge": 64, "longest_edge": 96}


SMALL = {
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
    "num_queries": 12,
    "use_timm_backbone": False,
    "backbone": None,
    "use_pretrained_backbone": False,
    "num_labels": 5,
}


STAGES = {"embedding_size": 8, "hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1], "layer_type": "basic"}


def detr():
    config = transformers.DetrConfig(
        backbone_config=transformers.ResNetConfig(**STAGES, out_features=["stage4"]), **SMALL
    )
    return transformers.DetrForObjectDetection(config), transformers.DetrImageProcessor(size=SIZE)


def yolos():
    config = transformers.YolosConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        image_size=[64, 96],
        num_detection_tokens=12,
        num_labels=5,
    )
    return transformers.YolosForObjectDetection(config), transformers.YolosImageProcessor(size=SIZE)


def rt_detr():
    backbone = transformers.RTDetrResNetConfig(**STAGES, out_features=["stage2", "stage3", "stage4"])
    config = transformers.RTDetrConfig(
        backbone_config=backbone,
        encoder_hidden_dim=16,
        encoder_in_channels=[8, 16, 16],
        feat_strides=[8, 16, 32],
        encoder_ffn_dim=16,
        encoder_attention_heads=2,
        d_model=16,
        num_queries=12,
        decoder_in_channels=[16, 16, 16],
        decoder_ffn_dim=16,
        decoder_layers=2,
        decoder_attention_heads=2,
        num_denoising=0,
        num_labels=5,
    )
    return transformers.RTDetrForObjectDetection(config), transformers.RTDetrImageProcessor(
        size={"height": 64, "width": 64}
    )


def saved(folder, make, **options):
    torch.manual_seed(0)
    model, processor = make()
    model.save_pretrained(folder, **options)
    processor.save_pretrained(folder)
    return model.eval(), processor


@pytest.mark.parametrize("make", [detr, yolos, rt_detr])
def test_regions_are_transformers_own(make, pictures, tmp_path):
    """Pictures of one size are a batch. The softmax of DETR and YOLOS has a rest, which is "no object"."""
    model, processor = saved(tmp_path, make)
    records = list(Detector(model=str(tmp_path), max_regions=5).build().records(pictures))
    assert [record.key for record in records] == ["0", "1", "2"]
    for picture, record in zip(pictures, records, strict=True):
        with torch.no_grad():
            output = model(**processor(images=picture.load(), return_tensors="pt"))
        logits = output.logits[0]
        chances = logits.sigmoid() if make is rt_detr else logits.softmax(-1)[:, :-1]
        scores, classes = chances.max(-1)
        order = scores.argsort(descending=True, stable=True)[:5]
        assert np.allclose(record.scores, scores[order], atol=1e-4)
        boxes = box_convert(output.pred_boxes[0, order], "cxcywh", "xyxy")
        assert np.allclose(record.boxes, boxes.clamp(0, 1), atol=1e-4)
        assert [*record.region_names] == [model.config.id2label[number] for number in classes[order].tolist()]
        total = chances.sum(-1, keepdim=True)
        assert np.allclose(record.classes.distributions(), (chances / total)[order], atol=1e-4)
        assert np.allclose(record.classes.probabilities.sum(1), total[order, 0].clamp(max=1), atol=1e-4)
        assert record.classes.names == tuple(model.config.id2label.values()) and record.classes.error(5) == ""
        assert np.allclose(record.features, output.last_hidden_state[0, -12:][order], atol=1e-4)


def test_the_class_before_those_of_objects365_is_none(pictures, tmp_path):
    model, _ = saved(tmp_path, rt_detr)
    (whole,) = Detector(model=str(tmp_path), max_regions=12).build().records(pictures[1:2])
    settings = json.loads((tmp_path / "config.json").read_text())
    settings["id2label"]["0"] = "None"
    (tmp_path / "config.json").write_text(json.dumps(settings))
    (record,) = Detector(model=str(tmp_path), max_regions=12).build().records(pictures[1:2])
    assert record.classes.names == whole.classes.names[1:] and "None" not in record.region_names
    known = {tuple(box): row for box, row in zip(whole.boxes.tolist(), whole.classes.distributions(), strict=True)}
    for box, shares in zip(record.boxes.tolist(), record.classes.distributions(), strict=True):
        theirs = known[tuple(box)][1:]
        assert np.allclose(shares, theirs / theirs.sum(), atol=1e-4)


def test_a_saved_detector_has_no_path_of_this_machine(tmp_path):
    saved(tmp_path / "detr", detr)
    (tmp_path / "export").mkdir()
    extractor = Detector(model=str(tmp_path / "detr")).build()
    extractor.save(tmp_path / "export")
    for path in (tmp_path / "export").glob("*.json"):
        assert str(tmp_path) not in path.read_text()
    assert Detector(model="local").load(tmp_path / "export").fingerprint["digest"] == extractor.fingerprint["digest"]
