"""Published features in HDF5, with an index file of the images' rows."""

import json
import pickle

import h5py
import numpy as np
import pytest
from kit.refusals import refusal
from mmgen_regions import LxmertH5

from mmgen.errors import DataError
from mmgen.features.extract import extract
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


@pytest.mark.parametrize(
    ("datasets", "expected"),
    [
        (
            {"image_features": np.ones((2, 3, 4)), "spatial_features": np.ones((2, 2, 6))},
            "spatial_features must be (2, 3, 6) for these image_features",
        ),
        (
            {"image_features": np.ones((6, 4)), "pos_boxes": np.ones((2, 3), int)},
            "pos_boxes must be whole numbers, (images, 2)",
        ),
        ({"image_features": np.ones((2, 3, 4), int)}, "image_features must be numbers"),
        ({"image_features": np.full((2, 3, 4), np.nan)}, "no image could be processed"),
        ({"image_features": np.ones((0, 3, 4))}, "its row in the index is 0, but the file has 0 rows"),
    ],
)
def test_lxmert_files_that_do_not_fit_together(tmp_path, datasets, expected):
    with h5py.File(tmp_path / "f.h5", "w") as file:
        for name, values in datasets.items():
            file[name] = values
    (tmp_path / "index.json").write_text('{"1": 0, "2": 1}')
    message = refusal(extract, LxmertH5(index=tmp_path / "index.json").build(), tmp_path / "f.h5", tmp_path / "s.h5")
    assert f"{tmp_path}/f.h5: " in message and expected in message


def test_a_key_of_several_lines_is_reported_in_one(tmp_path):
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["image_features"] = np.ones((2, 3, 4), np.float32)
        file["spatial_features"] = np.stack(
            [np.tile(np.float32(box), (3, 1)) for box in ([0.5, 0, 0.1, 1, 0, 0], [0, 0, 1, 1, 1, 1])]
        )
    (tmp_path / "index.json").write_text('{"\\n": 0, "2": 1}')
    done = extract(LxmertH5(index=tmp_path / "index.json").build(), tmp_path / "f.h5", tmp_path / "s.h5")
    assert done.broken == (
        ("\n", f"{tmp_path}/f.h5: image '\\n': a box has x0 > x1 or y0 > y1; boxes must be x0, y0, x1, y1"),
    )
