"""Fingerprints: what differs between two, and what they say about weights: random ones are mentioned everywhere."""

import pytest
from mmgen_extractors import Roi
from mmgen_inputs import Regions

from mmgen.features.fingerprints import differences, in_words, is_random, random_features

ROI = {"extractor": "roi", "model": "resnet18", "detector": {"weights": "pretrained", "size": 800}}


def test_only_what_differs_is_listed():
    changed = {**ROI, "model": "resnet50", "detector": {"weights": "pretrained"}}
    assert differences(ROI, changed) == ['model: "resnet18" -> "resnet50"', "detector.size: 800 -> null"]
    assert differences(ROI, ROI) == []


def test_a_fingerprint_in_words():
    assert in_words(ROI) == "roi resnet18" and in_words({}) == "unknown"


@pytest.mark.parametrize(
    ("fingerprint", "random"),
    [({"weights": "random"}, True), ({"detector": {"weights": "random"}}, True), (ROI, False), ("random", False)],
)
def test_random_weights_at_any_depth(fingerprint, random):
    assert is_random(fingerprint) is random


def test_extractors_with_random_weights_are_remarked():
    inputs = {name: Regions(extractor=Roi(model="resnet18", weights=name)) for name in ("random", "pretrained")}
    assert random_features(inputs) == {"random": "features of roi resnet18: random weights, not pretrained"}
