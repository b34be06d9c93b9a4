"""The layout of a feature store: compression and chunks."""

import h5py
import numpy as np
from kit.stores import fill, record


def test_compressed_only_where_smaller(tmp_path):
    noisy = fill(tmp_path / "noisy.h5", [record(str(i), 36, 64, i) for i in range(8)], "float16")
    sparse = fill(tmp_path / "sparse.h5", [record(str(i), features=np.eye(3, 64, dtype=np.float32)) for i in range(8)])
    assert (noisy.describe()["compression"], sparse.describe()["compression"]) == ("none", "gzip")


def test_an_image_is_a_chunk(tmp_path):
    fill(tmp_path / "s.h5", [record(str(i), 36, 64, i) for i in range(5)])
    with h5py.File(tmp_path / "s.h5") as file:
        assert file["features"].chunks == (36, 64)
