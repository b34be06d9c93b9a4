"""RoI-pooled features: of boxes in pictures, and of nothing else."""

import numpy as np
import pytest
import torch
from mmgen_extractors import Roi
from PIL import Image
from safetensors.torch import save_file

from mmgen.errors import DataError
from mmgen.parts import FailedImage, Picture


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
        (regions,) = extractor.records(
            [
                Picture(
                    "plain",
                    lambda shade=shade: Image.new("RGB", (64, 64), (shade,) * 3),
                    boxes=[(0.25, 0.25, 0.75, 0.75)],
                )
            ]
        )
        plain[shade] = regions.features[0]
    for size in ((64, 64), (96, 48), (40, 80)):
        halves = Image.new("RGB", size)
        halves.paste((255,) * 3, (size[0] // 2, 0, *size))
        (regions,) = extractor.records(
            [
                Picture(
                    "halves", lambda halves=halves: halves, boxes=[(0.15, 0.25, 0.35, 0.75), (0.65, 0.25, 0.85, 0.75)]
                )
            ]
        )
        for row, shade in enumerate((0, 255)):
            assert np.abs(regions.features[row] - plain[shade]).max() < 0.15 * np.abs(plain[0] - plain[255]).max(), (
                size,
                shade,
            )


@pytest.mark.slow
def test_features_are_the_pictures_alone(roi):
    pictures = [
        picture(str(number), size, number, boxes=BOXES) for number, size in enumerate([(80, 60), (50, 90), (64, 64)])
    ]
    together = list(roi.records(pictures))
    alone = [next(iter(Roi(image_size=64, batch_size=1).build().records([one_picture]))) for one_picture in pictures]
    for a, b in zip(together, alone, strict=True):
        assert a.key == b.key and np.abs(a.features - b.features).max() < 1e-5
    assert np.array_equal(list(roi.records(pictures))[1].features, together[1].features)


@pytest.mark.slow
def test_pictures_without_boxes(roi):
    (spread,) = roi.records([picture()])
    assert (
        len(spread.features) == 30
        and spread.boxes[0].tolist() == [0, 0, 1, 1]
        and spread.boxes[4].tolist() == [0.5, 0.5, 1, 1]
    )
    with_detector = Roi(
        image_size=64, detector=Roi(image_size=64, spread=2)
    ).build()  # a stand-in: its boxes are spread by 2
    (regions,) = with_detector.records([picture()])
    assert regions.boxes.shape == (5, 4) and regions.features.shape == (5, 576)
    assert with_detector.fingerprint["settings"]["detector"]["settings"]["spread"] == 2


def test_skipped_and_broken(roi):
    def fails():
        raise DataError("p.jpg: not an image")

    outcomes = list(roi.records([picture("a"), Picture("b", fails), picture("c")], frozenset({"a"})))
    assert outcomes[0] == FailedImage("b", "p.jpg: not an image") and outcomes[1].key == "c" and len(outcomes) == 2


@pytest.mark.slow
def test_fingerprint_has_model_and_settings(roi, tmp_path):
    assert roi.fingerprint == Roi(image_size=64, batch_size=3).build().fingerprint
    assert roi.fingerprint["digest"] != Roi(image_size=64, seed=1).build().fingerprint["digest"]
    settings = roi.fingerprint["settings"]
    assert Roi(**settings).build().fingerprint == roi.fingerprint
    assert settings == {
        "model": "resnet18",
        "weights": "random",
        "seed": 0,
        "level": 0,
        "pool": 3,
        "image_size": 64,
        "spread": 4,
    }


@pytest.mark.slow
def test_local_weights(tmp_path):
    import timm

    torch.manual_seed(5)
    network = timm.create_model("resnet18", pretrained=False)
    save_file(network.state_dict(), tmp_path / "w.safetensors")
    extractor = Roi(weights=str(tmp_path / "w.safetensors"), image_size=64).build()
    (regions,) = extractor.records([picture(boxes=BOXES)])
    assert regions.features.shape == (3, 512)  # pretrained weights: the coarsest level, averaged
    assert extractor.fingerprint["settings"]["weights"] == "file" and str(tmp_path) not in str(extractor.fingerprint)
    assert torch.equal(
        extractor.network.module.state_dict()["conv1.weight"].cpu(), network.state_dict()["conv1.weight"]
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "resnet1800"}, "timm has no model 'resnet1800'; did you mean 'resnet"),
        ({"level": 7}, "'resnet18' has 5 levels of feature maps, 0 to 4, but level is 7"),
        (
            {"weights": "w.pth"},
            'weights \'w.pth\' must be "pretrained", "random" or the path of an existing .safetensors file',
        ),
    ],
)
def test_networks_that_cannot_be_had(settings, message):
    with pytest.raises(DataError) as error:
        Roi(**settings).build()
    assert str(error.value).startswith(message) and "\n" not in str(error.value)


def test_weights_of_another_network(tmp_path):
    save_file({"conv1.weight": torch.zeros(1)}, tmp_path / "w.safetensors")
    with pytest.raises(DataError, match="'resnet18' with weights '.*w.safetensors' cannot be loaded: "):
        Roi(weights=str(tmp_path / "w.safetensors")).build()


def test_files_are_not_pictures(roi, tmp_path):
    with pytest.raises(DataError, match="'roi' extracts features from pictures, not from a file"):
        next(iter(roi.records(tmp_path)))
