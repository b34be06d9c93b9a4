"""Pickles of expressions are read without running code."""

import os
import pickle
import pickletools
import struct

import pytest
from kit import published
from mmgen_tasks import Refcoco
from mmgen_tasks.pickles import read_pickle

from mmgen.errors import DataError


def load_error(config: Refcoco) -> str:
    with pytest.raises(DataError) as error:
        config.build().split("train")
    assert "\n" not in str(error.value)
    return str(error.value)


class Harmful:
    def __reduce__(self):
        return os.mkdir, ("harm",)


@pytest.mark.parametrize(
    ("data", "fragment"),
    [
        (pickle.dumps([Harmful()], 0), "byte 5: the pickle has GLOBAL, which lists, tables and strings do not need"),
        (pickle.dumps([Harmful()], 4), "has STACK_GLOBAL"),
        (b"\x80\x02]q\x00(X\x01\x00\x00\x00aq\x01e\x8c", "not a pickle, or damaged after byte 14"),
        (b"]" + b"r" + struct.pack("<I", 1 << 31) + b".", "byte 1: stores value number 2147483648 after 2 steps"),
        (b"\x80\x05\x96" + struct.pack("<Q", 1 << 40) + b".", "not a pickle, or damaged"),
        (b"\x80\x04\x95" + struct.pack("<Q", 1 << 40) + b"].", "byte 2: a frame of 1099511627776 bytes"),
        (b"]}0e.", "not a complete pickle of lists, tables and strings"),
        (b"}]Ns.", "not a complete pickle of lists, tables and strings: unhashable type"),
        (b"U\x02\xff\xfe.", "not a complete pickle of lists, tables and strings: 'utf-8' codec"),
        (b"", "not a pickle, or damaged after byte 0"),
    ],
)
def test_a_pickle_of_more_than_plain_values(tmp_path, monkeypatch, data, fragment):
    monkeypatch.chdir(tmp_path)
    published.refcoco(tmp_path)
    (tmp_path / "refs(unc).p").write_bytes(data)
    message = load_error(Refcoco(folder=tmp_path))
    assert message.startswith(f"{tmp_path}/refs(unc).p: ") and fragment in message
    assert not (tmp_path / "harm").exists()


@pytest.mark.slow
def test_a_deeply_nested_pickle_and_one_inside_itself(tmp_path):
    (tmp_path / "refs(unc).p").write_bytes(b"]" * 300_000 + b"a" * 299_999 + b".")
    assert isinstance(read_pickle(tmp_path / "refs(unc).p"), list)
    published.refcoco(tmp_path)
    itself: list = []
    itself.append(itself)
    (tmp_path / "refs(unc).p").write_bytes(pickle.dumps(itself, 2))
    assert load_error(Refcoco(folder=tmp_path)).endswith(
        "refs(unc).p: refs[0]: must be a table with split, ann_id, sentences, not a list"
    )


def test_a_thing_that_is_repeated_without_end_is_refused_at_the_second_time(tmp_path):
    """A small pickle may contain a long list very often."""
    published.refcoco(tmp_path)
    ref = published.refs(7)[0]
    data = pickle.dumps([ref] * 50_000, 2)
    assert len(data) < 200_000 and len(list(pickletools.genops(data))) < 60_000 * 2
    (tmp_path / "refs(unc).p").write_bytes(data)
    assert load_error(Refcoco(folder=tmp_path)).endswith("refs(unc).p: refs[1]: sentences[0]: duplicate sent_id 7")
