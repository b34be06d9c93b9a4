"""Detectors as extractors: small random ones of transformers and torchvision."""

import json

import numpy as np
import pytest
import torch
import transformers
from mmgen_extractors import Detector

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


def conditional_detr():
    backbone = transformers.ResNetConfig(**STAGES, out_features=["stage4"])
    config = transformers.ConditionalDetrConfig(backbone_config=backbone, **SMALL)
    return transformers.ConditionalDetrForObjectDetection(config), transformers.ConditionalDetrImageProcessor(size=SIZE)


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


@pytest.mark.parametrize("make", [detr, conditional_detr, yolos, rt_detr])
def test_detectors_of_transformers(make, pictures, tmp_path):
    model, processor = saved(tmp_path, make)
    extractor = Detector(model=str(tmp_path), max_regions=5).build()
    records = list(extractor.records(pictures))
    assert [record.key for record in records] == ["0", "1", "2"]
    for record in records:
        assert record.features.shape == (5, 16) and record.boxes.shape == (5, 4) and len(record.region_names) == 5
        assert (np.diff(record.scores) <= 0).all() and record.boxes.min() >= 0 and record.boxes.max() <= 1
        assert (record.boxes[:, :2] <= record.boxes[:, 2:]).all()
    # transformers' own result for the second picture, alone
    inputs = processor(images=pictures[1].load(), return_tensors="pt")
    with torch.no_grad():
        output = model(pixel_values=inputs["pixel_values"])
    expected = processor.post_process_object_detection(output, threshold=0.0, target_sizes=[(1, 1)])[0]
    best = expected["scores"].max().item()
    assert records[1].scores[0] == pytest.approx(best, abs=1e-5)
    alone = list(Detector(model=str(tmp_path), max_regions=5, batch_size=1).build().records(pictures))
    for a, b in zip(records, alone, strict=True):
        assert np.abs(a.scores - b.scores).max() < 1e-4


@pytest.mark.parametrize("make", [detr, rt_detr])
def test_classes_are_the_detectors_distribution_over_things(make, pictures, tmp_path):
    model, processor = saved(tmp_path, make)
    (record,) = Detector(model=str(tmp_path), max_regions=12).build().records(pictures[1:2])
    inputs = processor(images=pictures[1].load(), return_tensors="pt")
    with torch.no_grad():
        output = model(pixel_values=inputs["pixel_values"])
    logits = output.logits[0]
    chances = logits.softmax(-1)[:, :-1] if make is detr else logits.sigmoid()
    order = chances.max(-1).values.argsort(descending=True, stable=True)
    expected = (chances / chances.sum(-1, keepdim=True))[order].numpy()
    assert np.allclose(record.classes.distributions(), expected, atol=1e-4)
    assert record.classes.names == tuple(model.config.id2label.values())
    if make is detr:  # a query has its own state; the rest of its distribution is "no object"
        assert np.abs(record.features - output.last_hidden_state[0, order].numpy()).max() < 1e-5
        assert np.allclose(record.classes.probabilities.sum(1), chances.sum(-1)[order].numpy(), atol=1e-4)
    assert record.classes.error(12) == ""


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
