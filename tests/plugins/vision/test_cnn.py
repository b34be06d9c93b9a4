"""Networks of timm with too little memory."""

import numpy as np
import pytest
from kit.writing import out_of_memory_error
from mmgen_extractors import TimmGrid
from PIL import Image

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
    for ours, theirs in zip(extractor.records(pictures), expected, strict=True):
        assert ours.key == theirs.key and np.allclose(ours.features, theirs.features, atol=1e-5)
    assert tried == [4, 2, 2, 1]
    assert caplog.messages[-1] == "extracting features: out of memory; from here on 2 pictures at a time"
