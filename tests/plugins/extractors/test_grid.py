"""Grids: cells in order, pooled from the right part of the picture, and read like regions."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from kit.stored import Words
from mmgen_extractors import Roi, TimmGrid
from mmgen_inputs import Grid
from PIL import Image

from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.features.extract import extract
from mmgen.parts import Picture

pytestmark = pytest.mark.slow


def picture(key="p", size=(80, 60), seed=0):
    pixels = np.random.default_rng(seed).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    return Picture(key, lambda: Image.fromarray(pixels))


def test_cells_row_by_row():
    (record,) = TimmGrid(image_size=96, grid=3, pool=2).build().records([picture()])
    assert record.features.shape == (9, 64 * 4)
    assert np.allclose(record.boxes[0], [0, 0, 1 / 3, 1 / 3]) and np.allclose(record.boxes[5], [2 / 3, 1 / 3, 1, 2 / 3])


def test_cells_are_what_roi_gives_for_their_boxes():
    """The picture is padded, not stretched, so that a grid and regions of one network see the same."""
    (record,) = TimmGrid(image_size=96, grid=3, pool=2).build().records([picture()])
    boxed = replace(picture(), boxes=[tuple(box) for box in record.boxes.tolist()])
    (regions,) = Roi(image_size=96, pool=2).build().records([boxed])
    assert np.allclose(record.features, regions.features, atol=1e-6) and np.allclose(record.boxes, regions.boxes)
    (own,) = TimmGrid(image_size=96, grid=3, pool=2).build().records([replace(picture(), boxes=[(0, 0, 1, 1)])])
    assert np.array_equal(own.features, record.features)


def test_features_are_the_pictures_alone():
    extractor = TimmGrid(image_size=64, grid=2).build()
    pictures = [picture(str(number), size, number) for number, size in enumerate([(80, 60), (50, 90)])]
    together = list(extractor.records(pictures))
    for one_picture, record in zip(pictures, together, strict=True):
        (alone,) = extractor.records([one_picture])
        assert np.abs(alone.features - record.features).max() < 1e-5


def test_levels_of_networks():
    (record,) = TimmGrid(model="convnext_atto", image_size=64, grid=2, level=-1, pool=1).build().records([picture()])
    assert record.features.shape == (4, 320)
    (record,) = (
        TimmGrid(model="swin_tiny_patch4_window7_224", image_size=224, grid=2, level=0, pool=1)
        .build()
        .records([picture()])
    )
    assert record.features.shape == (4, 96)  # this one puts its channels last


def test_through_the_store(tmp_path):
    extract(TimmGrid(image_size=64, grid=2).build(), [picture("a"), picture("b", seed=1)], tmp_path / "s.h5")
    torch.manual_seed(0)
    model = Grid(features=tmp_path / "s.h5", fields=("image",)).build(Words())
    example = Example("e", {"image": "a"})
    segment = model(**model.reader.collate([model.reader.read(example)]))
    assert segment.states.shape == (1, 4, 32) and segment.mask.all()
    assert [tuple(parameter.shape) for parameter in model.parameters()] == [(32, 576 + 4), (32,)]
    described = model.describe(example)
    assert described["names"] == ["region 1", "region 2", "region 3", "region 4"]
    assert described["boxes"][3] == [0.5, 0.5, 1, 1]


def test_regions_features_are_refused_by_name(tmp_path):
    extract(TimmGrid(image_size=64, grid=2).build(), [picture("a")], tmp_path / "a.h5")
    extract(TimmGrid(image_size=64, grid=3).build(), [picture("a")], tmp_path / "b.h5")
    model = Grid(features=tmp_path / "a.h5", fields=("image",)).build(Words())
    with pytest.raises(DataError) as error:
        Grid(features=tmp_path / "b.h5", fields=("image",), **model.inferred_settings()).build(Words()).reader.store  # noqa: B018
    assert "settings.grid: 2 -> 3" in str(error.value)


def test_fingerprint_builds_the_extractor_again():
    extractor = TimmGrid(image_size=64, grid=2, seed=4).build()
    assert TimmGrid(**extractor.fingerprint["settings"]).build().fingerprint == extractor.fingerprint
