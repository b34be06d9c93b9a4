"""Opening features: a file is one store, a folder of files is read as one."""

import pytest
from kit.stores import fill, record

from mmgen.errors import DataError
from mmgen.features.multi_file import MultiFileStore
from mmgen.features.store import FeatureStore
from mmgen.features.stores import open_store


def test_a_file_and_a_folder(tmp_path):
    for key in "ab":
        fill(tmp_path / f"{key}.h5", [record(key, 2)]).close()
    assert isinstance(open_store(tmp_path / "a.h5"), FeatureStore)
    both = open_store(tmp_path)
    assert isinstance(both, MultiFileStore) and {*both} == {"a", "b"}


def test_nothing_there(tmp_path):
    with pytest.raises(DataError, match="nowhere.h5: no such file; create features with `mmgen features extract`"):
        open_store(tmp_path / "nowhere.h5")
