"""Published features in NPZ and NPY folders."""

import json

import numpy as np
import pytest
from mmgen_extractors import NpzFolder

from mmgen.errors import DataError

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
FEATURES = RNG.random((4, 3, 5), np.float32)
PIXELS = np.array([[0, 0, 50, 40], [10, 20, 100, 80], [5, 5, 6, 6]], np.float32)  # of an image of 100 x 80
RELATIVE = PIXELS / [100, 80, 100, 80]


def outcomes(config, path, skip=()):
    return list(config.build().records(path, frozenset(skip)))


@pytest.mark.parametrize("background", [0, 1])
def test_npz_with_distributions(tmp_path, background):
    (tmp_path / "vocab.txt").write_text("yolk\ngoggles\n")
    chances = np.array([[0.6, 0.3], [0.1, 0.2], [0, 1]])
    distributions = np.concatenate([1 - chances.sum(1, keepdims=True), chances], 1)[:, 1 - background :]
    np.savez(tmp_path / "a.npz", x=FEATURES[0], cls_prob=distributions)
    np.savez(tmp_path / "b.npz", x=FEATURES[0], cls_prob=np.ones((3, 7)) / 7)
    first, second = outcomes(NpzFolder(class_names=tmp_path / "vocab.txt"), tmp_path)
    assert first.classes.ids.tolist() == [[0, 1], [1, 0], [1, 0]]
    assert np.allclose(first.classes.probabilities, [[0.6, 0.3], [0.2, 0.1], [1, 0]])
    assert second.reason.endswith("b.npz: cls_prob has shape (3, 7), but there are 2 class names")


def test_npz_folder(tmp_path):
    for number in range(2):
        info = {"objects_id": [1], "a dictionary": "is a pickle in an NPZ"}
        np.savez_compressed(
            tmp_path / f"COCO_val2014_{number:012d}.npz",
            x=FEATURES[number],
            bbox=PIXELS,
            num_bbox=3,
            image_h=80,
            image_w=100,
            info=info,
        )
    records = outcomes(NpzFolder(), tmp_path)
    assert [record.key for record in records] == ["0", "1"]
    assert np.array_equal(records[1].features, FEATURES[1]) and np.allclose(records[1].boxes, RELATIVE)


def test_npy_with_boxes_in_json(tmp_path):
    np.save(tmp_path / "a.npy", FEATURES[0])
    (tmp_path / "a_info.json").write_text(json.dumps({"bbox": PIXELS.tolist(), "image_width": 100, "image_height": 80}))
    (record,) = outcomes(NpzFolder(), tmp_path)
    assert np.allclose(record.boxes, RELATIVE)


def test_no_arrays(tmp_path):
    with pytest.raises(DataError, match="contains no .npz or .npy files"):
        outcomes(NpzFolder(), tmp_path)
    (tmp_path / "f").touch()
    with pytest.raises(DataError, match="not a folder; give a folder of .npz or .npy files"):
        outcomes(NpzFolder(), tmp_path / "f")
