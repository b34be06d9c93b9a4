"""Merging shards: a file that is there already keeps nothing that the shards do not have."""

import h5py
import numpy as np
import pytest
from kit.stores import fill, record

from mmgen.errors import DataError
from mmgen.features.merge import checked_shards, write_merged
from mmgen.features.store import FeatureStore
from mmgen.progress import Progress


def test_a_file_with_other_images_is_not_merged_into(tmp_path):
    path = tmp_path / "r.h5"
    fill(tmp_path / "r-1-of-1.h5", [record("a"), record("b")])
    for _ in range(2):  # merging again changes nothing
        write_merged(path, checked_shards(path), Progress())
        assert list(FeatureStore(path)) == ["a", "b"]
    path.unlink()
    fill(path, [record("stale")])
    with pytest.raises(DataError) as error:
        write_merged(path, checked_shards(path), Progress())
    assert str(error.value) == f"{path}: has image 'stale', which is in no shard; delete the file, and merge again"


def test_a_shard_with_a_record_that_no_writer_writes_is_named(tmp_path):
    path, shard = tmp_path / "r.h5", tmp_path / "r-1-of-1.h5"
    fill(shard, [record("a"), record("b")])
    with h5py.File(shard, "r+") as file:
        file["features"][0, 0] = np.nan
    with pytest.raises(DataError) as error:
        write_merged(path, checked_shards(path), Progress())
    assert str(error.value) == (
        f"{shard}: image 'a': features are not finite (NaN or infinite); extract this shard again"
    )
