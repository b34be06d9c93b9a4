"""The measurement of stores: made-up files are stores, and every way reads them."""

from mmgen.features.index import write_index
from mmgen.features.stores import open_store
from tools.stores import WAYS, measure, write


def test_every_way_reads_the_files(tmp_path):
    write(tmp_path, 120, 3)
    assert write_index(tmp_path) == 120
    store = open_store(tmp_path)
    assert sorted(store) == [f"{place:012}" for place in range(120)] and store.read(f"{119:012}").features.any()
    for way in WAYS:
        result = measure(tmp_path, way, 20, 2)
        assert result["images"] > 0 and result["open"] >= 0
