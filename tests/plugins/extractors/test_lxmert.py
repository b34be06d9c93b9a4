"""Published features in HDF5, with an index file of the images' rows."""

import json

import h5py
import numpy as np
import pytest
from mmgen_extractors import LxmertH5

from mmgen.parts import FailedImage

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
FEATURES = RNG.random((4, 3, 5), np.float32)
PIXELS = np.array([[0, 0, 50, 40], [10, 20, 100, 80], [5, 5, 6, 6]], np.float32)  # of an image of 100 x 80
RELATIVE = PIXELS / [100, 80, 100, 80]


def outcomes(config, path, skip=()):
    return list(config.build().records(path, frozenset(skip)))


def lxmert(tmp_path, index, **datasets):
    (tmp_path / "index.json").write_text(json.dumps(index))
    with h5py.File(tmp_path / "f.hdf5", "w") as file:
        for name, values in datasets.items():
            file[name] = values
    return LxmertH5(index=tmp_path / "index.json"), tmp_path / "f.hdf5"


SPATIAL = np.concatenate([RELATIVE, np.zeros((3, 2))], 1).astype(np.float32)


def test_hdf5_with_as_many_regions_everywhere(tmp_path):
    config, path = lxmert(
        tmp_path,
        {"42": 1, "7": 0, "9": 12},
        image_features=FEATURES,
        spatial_features=np.stack([SPATIAL] * 4),
        image_bb=np.stack([PIXELS] * 4),
    )
    a, b, c = outcomes(config, path)
    assert (a.key, b.key) == ("42", "7") and np.array_equal(a.features, FEATURES[1]) and np.allclose(a.boxes, RELATIVE)
    assert c == FailedImage("9", f"{path}: its row in the index is 12, but the file has 4 rows")


def test_hdf5_with_differing_regions(tmp_path):
    flat, ranges = FEATURES.reshape(12, 5), np.array([[0, 3], [3, 4], [4, 99]])
    config, path = lxmert(
        tmp_path, ["a", "b", "c"], image_features=flat, pos_boxes=ranges, spatial_features=np.concatenate([SPATIAL] * 4)
    )
    a, b, c = outcomes(config, path)
    assert a.features.shape == (3, 5) and b.features.shape == (1, 5) and np.array_equal(b.features, flat[3:4])
    assert c == FailedImage("c", f"{path}: its rows in pos_boxes are 4 to 99, but the file has 12 rows")
