"""Fingerprints: what differs between two, and what they say about weights: random ones are mentioned everywhere."""

import json

import numpy as np
import pytest
from kit import toys
from kit.toys import PLACE, mmgen_here
from mmgen_extractors import Detector, Roi, TimmGrid
from mmgen_inputs import Grid, Regions
from mmgen_vl import cnn

from mmgen.features.fingerprints import difference, in_words, is_random
from mmgen.features.random_features import random_features
from mmgen.features.writer import StoreWriter
from mmgen.parts import Record


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
    assert difference({"a": 1}, {}) == "a: 1 there, nothing here"


def test_a_fingerprint_in_words():
    assert in_words(ROI) == "roi resnet18" and in_words({}) == "unknown"


@pytest.mark.parametrize(
    ("fingerprint", "random"),
    [({"weights": "random"}, True), ({"detector": {"weights": "random"}}, True), (ROI, False), ("random", False)],
)
def test_random_weights_at_any_depth(fingerprint, random):
    assert is_random(fingerprint) is random


def test_extractors_with_random_weights():
    inputs = {
        "photo": Regions(extractor=Roi()),
        "learnt": Regions(extractor=Roi(weights="pretrained")),
        "cells": Grid(extractor=TimmGrid(model="resnet10t")),
        "found": Regions(extractor=Detector()),
        "none": Regions(),
    }
    assert random_features(inputs) == {
        "photo": "features of roi resnet18: random weights, not pretrained",
        "cells": "features of timm_grid resnet10t: random weights, not pretrained",
    }


@pytest.mark.parametrize(
    ("fingerprint", "expected"),
    [
        ({"extractor": "roi", "model": "a", "settings": {"weights": "random"}}, "features of roi a"),
        ({"extractor": "roi", "settings": {"weights": "file", "detector": {"weights": "random"}}}, "features of roi"),
        ({"extractor": "roi", "model": "a", "settings": {"weights": "pretrained"}}, ""),
    ],
)
def test_stores_of_features_from_random_weights(tmp_path, fingerprint, expected):
    with StoreWriter(tmp_path / "a.h5", fingerprint) as writer:
        writer.add(Record("1", np.ones((1, 4), np.float32), np.float32([[0, 0, 1, 1]])))
    remarks = random_features({"image": Regions(features=tmp_path / "a.h5"), "lost": Regions(features=tmp_path / "b")})
    assert remarks == ({"image": f"{expected}: random weights, not pretrained"} if expected else {})
    info = mmgen_here(tmp_path, "features", "info", "a.h5").stdout
    assert ('"weights": "random weights, not pretrained"' in info) == bool(expected)


@pytest.mark.slow
def test_a_run_its_page_and_data_check_say_so(tmp_path):
    extractor = toys.ROI
    inputs = {"image": {"type": "regions", "extractor": extractor}}
    steps = {"first": {"inputs": ["image"], "train": ["image"]}}
    data = {"train_size": 4, "val_size": 1, "test_size": 2, "image_size": 64}
    (tmp_path / "toy.toml").write_text(toys.recipe(inputs=inputs, steps=steps, data=data, metrics=None))
    remark = "features of roi test_resnet: random weights, not pretrained"
    checked = mmgen_here(tmp_path, "data", "check", "toy.toml").stdout
    assert f"\nimage: {remark}\n" in checked
    done = mmgen_here(tmp_path, "run", "toy.toml")
    assert done.returncode == 0, done.stderr
    assert f"\nimage: {remark}\n" in done.stdout
    environment = json.loads((tmp_path / PLACE / "environment.json").read_text())
    assert environment["random features"] == {"image": remark}
    page = (tmp_path / PLACE / "report.html").read_text()
    assert f"<p>image: {remark}.</p>" in page and f"<dt>image</dt><dd>{remark}</dd>" in page
