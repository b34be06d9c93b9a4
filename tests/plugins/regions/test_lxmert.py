"""Published features in HDF5, with an index file of the images' rows."""

import json
import pickle

import h5py
import numpy as np
import pytest
from mmgen_regions import LxmertH5

from mmgen.errors import DataError
from mmgen.parts import FailedImage

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
FEATURES = RNG.random((4, 3, 5), np.float32)
PIXELS = np.array([[0, 0, 50, 40], [10, 20, 100, 80], [5, 5, 6, 6]], np.float32)  # of an image of 100 x 80
RELATIVE = PIXELS / [100, 80, 100, 80]


def outcomes(config, path, skip=()):
    return list(config.build().records(path, frozenset(skip)))


# --- NPZ and NPY ----------------------------------------------------------------------------------------------------


class Bomb:
    def __reduce__(self):
        return (exec, ("raise SystemExit('a pickle was opened')",))


# --- HDF5 -----------------------------------------------------------------------------------------------------------


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
    assert config.build().count(path) == 3


def test_hdf5_with_differing_regions(tmp_path):
    flat, ranges = FEATURES.reshape(12, 5), np.array([[0, 3], [3, 4], [4, 99]])
    config, path = lxmert(
        tmp_path, ["a", "b", "c"], image_features=flat, pos_boxes=ranges, spatial_features=np.concatenate([SPATIAL] * 4)
    )
    a, b, c = outcomes(config, path)
    assert a.features.shape == (3, 5) and b.features.shape == (1, 5) and np.array_equal(b.features, flat[3:4])
    assert c == FailedImage("c", f"{path}: its rows in pos_boxes are 4 to 99, but the file has 12 rows")


def test_files_that_are_not_hdf5(tmp_path):
    config, path = lxmert(tmp_path, {"1": 0}, something=FEATURES)
    with pytest.raises(DataError, match="f.hdf5: not an HDF5 file of features, or damaged: image_features must be"):
        outcomes(config, path)
    path.write_text("hello")
    with pytest.raises(DataError, match="f.hdf5: not an HDF5 file of features, or damaged: "):
        outcomes(config, path)


def test_hdf5_links_are_not_followed(tmp_path):
    config, path = lxmert(tmp_path, {"1": 0}, image_features=h5py.ExternalLink("other.h5", "/x"))
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = FEATURES
    with pytest.raises(DataError, match="'image_features' is a link, and links are not followed"):
        outcomes(config, path)


def test_invalid_indexes(tmp_path):
    (tmp_path / "imgid2idx.pkl").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(
        DataError, match="imgid2idx.pkl: a pickle could run any program and is not opened; if you trust the file"
    ):
        LxmertH5(index=tmp_path / "imgid2idx.pkl").build()
    with pytest.raises(DataError, match="no such file; 'index' must be a JSON file"):
        LxmertH5(index=tmp_path / "no.json").build()
    (tmp_path / "bad.json").write_text('{"1": "zero"}')
    with pytest.raises(DataError, match="must be a JSON object of image id to row, or a list of image ids"):
        LxmertH5(index=tmp_path / "bad.json").build()
