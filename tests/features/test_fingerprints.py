"""Fingerprints: what differs between two, and what they say about weights."""

import pytest
from mmgen_vl import cnn

from mmgen.features.fingerprints import difference, in_words, is_random


def test_the_last_level_of_a_transformer_is_its_last_block():
    module, width = cnn.create("test_vit", -1, 160, "test_vit")
    assert cnn.channels(module) == [width] * 6 and module.feature_info.out_indices == (5,)


ROI = {"extractor": "roi", "model": "resnet18", "detector": {"weights": "pretrained", "size": 800}}


def test_only_what_differs_is_listed():
    changed = {**ROI, "model": "resnet50", "detector": {"weights": "pretrained"}}
    assert difference(ROI, changed, ("in training", "here")) == (
        "model: resnet18 in training, resnet50 here; detector.size: 800 in training, nothing here"
    )
    assert difference(ROI, ROI) == ""
    assert difference("roi", None) == "roi there, nothing here"


def test_a_fingerprint_in_words():
    assert in_words(ROI) == "'roi resnet18'" and in_words({}) == "'unknown'"


@pytest.mark.parametrize(
    ("fingerprint", "random"),
    [({"weights": "random"}, True), ({"detector": {"weights": "random"}}, True), (ROI, False), ("random", False)],
)
def test_random_weights_at_any_depth(fingerprint, random):
    assert is_random(fingerprint) is random
