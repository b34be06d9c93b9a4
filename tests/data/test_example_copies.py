"""Copies of examples in a temporary file."""

from mmgen.data.example_copies import Copy
from mmgen.tensors import Example

CHUNKS = [[Example("a", {"caption": "a dog"}), Example("b", {})], [Example("c", {})]]


def test_chunks_come_back_as_they_were_added_and_more_than_once():
    copy = Copy()
    for chunk in CHUNKS:
        copy.add(chunk)
    assert copy.complete and [*copy.chunks()] == CHUNKS == [*copy.chunks()]


def test_a_value_that_cannot_be_pickled_leaves_the_copy_out():
    copy = Copy()
    copy.add(CHUNKS[0])
    copy.add([Example("d", {"caption": lambda: None})])
    assert not copy.complete
    copy.add(CHUNKS[1])  # no error: the data set makes its examples again
