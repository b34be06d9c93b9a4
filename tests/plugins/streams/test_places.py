"""Names of many files, and where they are."""

import pytest
from mmgen_streams.places import ranges

from mmgen.errors import DataError


def test_ranges():
    assert list(ranges("a-{08..10}.tar")) == ["a-08.tar", "a-09.tar", "a-10.tar"]
    assert list(ranges("{0..1}/x-{1..2}")) == ["0/x-1", "0/x-2", "1/x-1", "1/x-2"] and list(ranges("x.tar")) == [
        "x.tar"
    ]
    with pytest.raises(DataError, match="a range of more than 1,000,000 files"):
        list(ranges("{0..9999999999}"))
