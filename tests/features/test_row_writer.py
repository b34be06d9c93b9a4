"""Rows of a feature store are written in whole chunks, however many a buffer holds."""

from kit.stores import assert_same_record, fill, record


def test_more_than_a_buffer(tmp_path, monkeypatch):
    monkeypatch.setattr("mmgen.features.row_writer.BUFFER_BYTES", 500)
    records = [record(str(i), i % 7, 4, i) for i in range(40)]
    store = fill(tmp_path / "s.h5", records)
    for expected in records[1:7]:
        assert_same_record(store.read(expected.key), expected)
    assert_same_record(store.read("39"), records[39])
