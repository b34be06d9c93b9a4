"""The index of a store in many files: what it finds is what the files have, in any process; an old one is refused."""

import json
import pickle
import zlib

import numpy as np
import pytest
from click.testing import CliRunner
from kit.stores import FINGERPRINT, assert_same_record, fill, record

from mmgen.cli import main
from mmgen.errors import DataError
from mmgen.features.index import ALIGNED, CHECKSUM, MAGIC, IndexedStore, index_path, write_index
from mmgen.features.multi_file import MultiFileStore
from mmgen.features.stores import open_store

KEYS = ("ba", "d", "cé", ["ein langer Name", "0"])


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "regions"
    folder.mkdir()
    for number, keys in enumerate(KEYS):
        fill(folder / f"part{number}.h5", [record(key, 2 + number, seed=ord(key[0])) for key in keys])
    return folder


def test_an_indexed_store_is_the_store_without_it(folder):
    for path in (folder, folder / "part[0-3].h5"):
        plain = open_store(path)
        done = CliRunner().invoke(main, ["features", "index", str(path)])
        assert done.exit_code == 0 and done.output.startswith(f"{index_path(path)}: 7 images, ")
        indexed = open_store(path)
        assert type(plain) is MultiFileStore and type(indexed) is IndexedStore
        assert list(indexed) == list(plain) and len(indexed) == len(plain) == 7
        assert (indexed.width, indexed.fingerprint, indexed.class_names) == (4, FINGERPRINT, ())
        for store in (indexed, pickle.loads(pickle.dumps(indexed))):
            for key in plain:
                assert_same_record(store.read(key), plain.read(key))
                assert store.count(key) == plain.count(key)
        for record_, expected in zip(indexed.records(), plain.records(), strict=True):
            assert_same_record(record_, expected)
        for absent in ("x", "a name that is longer than all of them", "", 7):
            assert absent not in indexed
        assert indexed.read("c", limit=1).features.shape == (1, 4) and indexed.count("x") == 0
        messages = []
        for store in (plain, indexed):
            with pytest.raises(DataError) as error:
                store.read("x")
            messages.append(str(error.value))
        assert messages[0] == messages[1]
        described = indexed.describe()
        assert described.pop("index").endswith(f" bytes in {index_path(path)}") and described == plain.describe()


def test_files_are_opened_a_few_at_a_time(folder, monkeypatch):
    monkeypatch.setattr("mmgen.features.index.OPEN", 2)
    write_index(folder)
    store = IndexedStore(folder)
    for key in ("b", "d", "c", "0", "a"):
        store.read(key)
        assert len(store._open_files) <= 2 and not any(file.in_memory for file in store._open_files.values())
    assert list(store._open_files) == [3, 0]
    store.close()
    assert not store._open_files


def test_the_index_is_mapped_and_not_read(folder):
    write_index(folder)
    store = IndexedStore(folder)
    for array in (store._keys, store._ends, store._order):
        assert isinstance(array.base, np.memmap) and not array.flags.writeable and not array.flags.owndata


def test_an_index_of_other_files_is_refused_when_one_is_read(folder):
    write_index(folder)
    plain = IndexedStore(folder)
    ends, keys = plain._ends.copy(), plain._keys.copy()
    ends[1] += 1
    keys[1] = b"aa"
    for header, values in (({"width": 5}, {}), ({"fingerprint": {}}, {}), ({}, {"ends": ends}), ({}, {"keys": keys})):
        store = open_sealed(folder, header, values)
        with pytest.raises(DataError, match=r"\.features\.index: does not match .*part0.h5; write it again with"):
            store.read("b")
    keys[1] = b"a\xff"
    with pytest.raises(DataError, match="damaged, or of an older version"):
        list(open_sealed(folder, {}, {"keys": keys}))


def open_sealed(folder, header, arrays):
    """The store with an index whose values are others, with the checksum of those."""
    write_index(folder)
    path, store = index_path(folder), IndexedStore(folder)
    line = path.read_bytes().partition(b"\n")[0]
    text = json.dumps({**json.loads(line[CHECKSUM:]), **header}).encode()
    content = text + b" " * (-(CHECKSUM + len(text) + 1) % ALIGNED) + b"\n"
    for name in ("keys", "ends", "order"):
        data = arrays.get(name, getattr(store, f"_{name}")).tobytes()
        content += data + bytes(-len(data) % ALIGNED)
    path.write_bytes(MAGIC + b"%08x " % zlib.crc32(content) + content)
    return open_store(folder)


def test_files_that_do_not_belong_together_have_no_index(folder):
    fill(folder / "same.h5", [record("a")])
    with pytest.raises(DataError) as error:
        write_index(folder)
    assert str(error.value) == f"{folder}: image 'a' is in two files; each must be in one"
    (folder / "same.h5").unlink()
    fill(folder / "wide.h5", [record("w", width=5)])
    with pytest.raises(DataError, match="wide.h5: features have width 5, but those of .*part0.h5 have width 4"):
        write_index(folder)
    with pytest.raises(DataError) as error:
        write_index(folder / "wide.h5")
    assert str(error.value) == (
        f"{folder}/wide.h5: is one file; an index is for a folder or a pattern, such as regions/*.h5"
    )
