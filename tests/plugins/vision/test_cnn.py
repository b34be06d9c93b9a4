"""Networks of timm: levels, precision and settings."""

from typing import Literal

import numpy as np
import pytest
import timm
import torch
from kit.writing import out_of_memory_error
from mmgen_extractors import TimmGrid
from mmgen_vision import cnn
from mmgen_vision.cnn_config import CnnConfig
from PIL import Image

from mmgen.errors import RunError
from mmgen.parts import Picture


@pytest.mark.slow
def test_pictures_are_described_the_same_in_halves(caplog):
    draw = np.random.default_rng(0)
    images = [Image.fromarray(draw.integers(0, 255, (40, 40, 3), np.uint8)) for _ in range(5)]
    pictures = [Picture(str(number), lambda image=image: image) for number, image in enumerate(images)]
    extractor = TimmGrid(model="resnet18", weights="random", grid=2, image_size=64, batch_size=4).build()
    expected = list(extractor.records(pictures))
    network, tried = extractor.network, []

    def cramped(pixels, sizes):
        tried.append(len(pixels))
        if len(pixels) > 2:
            raise out_of_memory_error()
        return network(pixels, sizes)

    extractor.network = cramped
    caplog.clear()
    with caplog.at_level("WARNING", "mmgen"):
        cut = list(extractor.records(pictures))
    assert [record.key for record in cut] == [record.key for record in expected] == list("01234")
    for ours, theirs in zip(cut, expected, strict=True):
        assert np.allclose(ours.features, theirs.features, atol=1e-5)
    assert tried == [4, 2, 2, 1] and caplog.messages == [
        "extracting features: out of memory; from here on 2 pictures at a time"
    ]
    extractor.network = lambda pixels, sizes: cramped(pixels.repeat(3, 1, 1, 1), sizes.repeat(3, 1))
    with pytest.raises(RunError) as raised:
        list(extractor.records(pictures))
    assert (
        str(raised.value)
        == "extracting features: out of memory with a single picture ('0'); use a smaller network, smaller pictures "
        "(image_size), or a larger device"
    )


@pytest.mark.slow
def test_a_network_is_built_once_with_its_weights(monkeypatch):
    """Before that, its levels are counted without weights, once for a process; the global generator draws nothing."""
    calls, create = [], timm.create_model

    def counted(*names, **options):
        calls.append((options.get("pretrained"), options.get("out_indices")))
        return create(*names, **options)

    monkeypatch.setattr(timm, "create_model", counted)
    cnn.level_channels.cache_clear()
    state = torch.get_rng_state()
    networks = [cnn.load("resnet10t", "random", 7, -1, 64) for _ in range(2)]
    assert calls == [(None, None), (False, (4,)), (False, (4,))] and torch.equal(torch.get_rng_state(), state)
    assert [width for _, width in networks] == [512, 512]
    assert cnn.digest(networks[0][0].state_dict()) == cnn.digest(networks[1][0].state_dict())


class Cells(CnnConfig):
    type: Literal["cells"] = "cells"


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({}, (0, 3, 192)),
        ({"weights": "pretrained"}, (-1, 1, 448)),
        ({"weights": "r50.safetensors", "level": 2}, (2, 1, 448)),
        ({"level": 0, "pool": 2, "image_size": 64}, (0, 2, 64)),
    ],
)
def test_defaults_depend_on_the_weights(settings, expected):
    assert Cells(**settings).feature_settings() == expected
