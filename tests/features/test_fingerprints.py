"""Fingerprints of features say whether a network had random weights."""

import pytest

from mmgen.features.fingerprints import is_random

ROI = {"extractor": "roi", "model": "resnet18", "detector": {"weights": "pretrained", "size": 800}}


@pytest.mark.parametrize(
    ("fingerprint", "random"),
    [({"weights": "random"}, True), ({"detector": {"weights": "random"}}, True), (ROI, False), ("random", False)],
)
def test_random_weights_at_any_depth(fingerprint, random):
    assert is_random(fingerprint) is random
