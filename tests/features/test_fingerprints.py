"""Fingerprints: what differs between two, and what they say about weights: random ones are mentioned everywhere."""

import pytest
from mmgen_extractors import Roi
from mmgen_inputs import Regions

from mmgen.features.fingerprints import difference, in_words, is_random
from mmgen.features.random_features import random_features

ROI = {"extractor": "roi", "model": "resnet18", "detector": {"weights": "pretrained", "size": 800}}


def test_only_what_differs_is_listed():
    changed = {**ROI, "model": "resnet50", "detector": {"weights": "pretrained"}}
    assert difference(ROI, changed, ("in training", "here")) == (
        "model: resnet18 in training, resnet50 here; detector.size: 800 in training, nothing here"
    )
    assert difference(ROI, ROI) == ""
    assert difference({"a": 1}, {}) == "a: 1 there, nothing here"


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
