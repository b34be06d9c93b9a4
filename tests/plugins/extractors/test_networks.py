"""Features of networks of timm: of boxes, or of the cells of a grid, and of nothing else in a picture."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from mmgen_extractors import Roi, TimmGrid
from mmgen_vision.cnn import level_channels
from PIL import Image
from safetensors.torch import save_file

from mmgen.errors import DataError
from mmgen.parts import Picture

pytestmark = pytest.mark.slow


def picture(key="p", size=(80, 60), seed=0, **changes):
    pixels = np.random.default_rng(seed).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    return Picture(key, lambda: Image.fromarray(pixels), **changes)


BOXES = [(0.0, 0.0, 0.5, 0.5), (0.25, 0.5, 1.0, 1.0), (0.0, 0.0, 1.0, 1.0)]


@pytest.fixture(scope="module")
def roi():
    return Roi(image_size=64).build()


def test_boxes_and_region_names_of_a_picture(roi):
    (regions,) = roi.records([picture(boxes=BOXES, region_names=["a", "b", "all"])])
    assert regions.features.shape == (3, 576) and np.isfinite(regions.features).all()
    assert np.allclose(regions.boxes, BOXES) and regions.region_names == ("a", "b", "all")
    assert not np.allclose(regions.features[0], regions.features[1])
    (nothing,) = roi.records([picture(boxes=[])])
    assert nothing.features.shape == (0, 576) and nothing.boxes.shape == (0, 4)


def test_a_box_sees_its_own_part():
    """Left half black, right half white: pooled over a half, the map is that half's, in wide and in high pictures
    alike."""
    extractor = Roi(image_size=64, pool=1).build()
    plain = {}
    for shade in (0, 255):
        image, boxes = Image.new("RGB", (64, 64), (shade,) * 3), [(0.25, 0.25, 0.75, 0.75)]
        (regions,) = extractor.records([Picture("plain", lambda image=image: image, boxes=boxes)])
        plain[shade] = regions.features[0]
    apart = np.abs(plain[0] - plain[255]).max()
    for size in ((64, 64), (96, 48), (40, 80)):
        halves = Image.new("RGB", size)
        halves.paste((255,) * 3, (size[0] // 2, 0, *size))
        boxes = [(0.15, 0.25, 0.35, 0.75), (0.65, 0.25, 0.85, 0.75)]
        (regions,) = extractor.records([Picture("halves", lambda halves=halves: halves, boxes=boxes)])
        for row, shade in enumerate((0, 255)):
            assert np.abs(regions.features[row] - plain[shade]).max() < 0.15 * apart, (size, shade)


def test_pictures_without_boxes(roi):
    (spread,) = roi.records([picture()])
    assert len(spread.features) == 30 and spread.boxes[[0, 4]].tolist() == [[0, 0, 1, 1], [0.5, 0.5, 1, 1]]
    with_detector = Roi(image_size=64, detector=Roi(image_size=64, spread=2)).build()  # a stand-in
    (regions,) = with_detector.records([picture()])
    assert regions.boxes.shape == (5, 4) and regions.features.shape == (5, 576)
    assert with_detector.fingerprint["settings"]["detector"]["settings"]["spread"] == 2


def test_local_weights(tmp_path):
    import timm

    torch.manual_seed(5)
    network = timm.create_model("resnet18", pretrained=False)
    save_file(network.state_dict(), tmp_path / "w.safetensors")
    extractor = Roi(weights=str(tmp_path / "w.safetensors"), image_size=64).build()
    (regions,) = extractor.records([picture(boxes=BOXES)])
    assert regions.features.shape == (3, 512)  # pretrained weights: the coarsest level, averaged
    assert extractor.fingerprint["settings"]["weights"] == "file" and str(tmp_path) not in str(extractor.fingerprint)
    loaded = extractor.network.module.state_dict()["conv1.weight"].cpu()
    assert torch.equal(loaded, network.state_dict()["conv1.weight"])
    save_file({"conv1.weight": torch.zeros(1)}, tmp_path / "w.safetensors")
    with pytest.raises(DataError, match="'resnet18' with weights '.*w.safetensors' cannot be loaded: "):
        Roi(weights=str(tmp_path / "w.safetensors")).build()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "resnet1800"}, "timm has no model 'resnet1800'; did you mean 'resnet"),
        ({"level": 7}, "'resnet18' has 5 levels of feature maps, 0 to 4, but level is 7"),
    ],
)
def test_networks_that_cannot_be_had(settings, message):
    with pytest.raises(DataError) as error:
        Roi(**settings).build()
    assert str(error.value).startswith(message) and "\n" not in str(error.value)


def test_cells_are_what_roi_gives_for_their_boxes():
    """The picture is padded, not stretched, so that a grid and regions of one network see the same."""
    (record,) = TimmGrid(image_size=96, grid=3, pool=2).build().records([picture()])
    assert np.allclose(record.boxes[5], [2 / 3, 1 / 3, 1, 2 / 3])  # row by row
    boxed = replace(picture(), boxes=[tuple(box) for box in record.boxes.tolist()])
    (regions,) = Roi(image_size=96, pool=2).build().records([boxed])
    assert np.allclose(record.features, regions.features, atol=1e-6) and np.allclose(record.boxes, regions.boxes)
    (own,) = TimmGrid(image_size=96, grid=3, pool=2).build().records([replace(picture(), boxes=[(0, 0, 1, 1)])])
    assert np.array_equal(own.features, record.features)


def test_levels_of_networks():
    (record,) = TimmGrid(model="convnext_atto", image_size=64, grid=2, level=-1, pool=1).build().records([picture()])
    assert record.features.shape == (4, 320)
    channels_last = TimmGrid(model="swin_tiny_patch4_window7_224", image_size=224, grid=2, level=0, pool=1)
    (record,) = channels_last.build().records([picture()])
    assert record.features.shape == (4, 96)


def test_a_network_whose_deeper_levels_are_not_used_is_saved_and_loaded(tmp_path):
    """Of resnet18's 11 M numbers, the first level has 0.1 %; a process that loads it has built no other before."""
    saved = Roi(model="resnet18", weights="random", level=0).build()
    saved.save(tmp_path)
    level_channels.cache_clear()
    loaded = Roi(model="resnet18", weights="random", level=0).load(tmp_path)
    assert loaded.fingerprint == saved.fingerprint and (tmp_path / "network.safetensors").stat().st_size < 100_000
