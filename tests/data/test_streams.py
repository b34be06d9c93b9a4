"""Endless streams of examples: their plan and their positions."""

import pickle

import pytest

from mmgen.data.stream_plan import StreamUpdates
from mmgen.data.streams import NoExamples, StreamExamples
from mmgen.errors import DataError
from mmgen.parts import Stream
from mmgen.tensors import Example


class Numbers(Stream):
    """The examples n0, n1, ...; the end is not followed by a beginning."""

    def __init__(self):
        self.starts = []

    def read(self, position):
        self.starts.append(position)
        return (Example(f"n{number}", {}) for number in range(position, 9))

    def fingerprint(self):
        return "numbers"


def test_earlier_positions_are_read_from_the_stream_again():
    stream = Numbers()
    examples = StreamExamples(stream)
    assert [examples[position].id for position in (2, 3, 6, 6, 1)] == ["n2", "n3", "n6", "n6", "n1"]
    assert stream.starts == [2, 6, 1]


def test_an_end_is_an_error():
    examples = StreamExamples(Numbers())
    with pytest.raises(DataError) as error:
        examples[9]
    assert str(error.value) == "the stream ends at position 9; it must begin again after its last example"


def test_a_copy_for_another_process_reads_from_the_beginning():
    examples = StreamExamples(Numbers())
    assert examples[4].id == "n4"
    copy = pickle.loads(pickle.dumps(examples))
    assert copy[5].id == "n5" and copy.stream.starts == [4, 5]


@pytest.mark.parametrize("use", [len, lambda examples: examples[0]])
def test_other_examples_of_a_stream_are_refused(use):
    with pytest.raises(DataError) as error:
        use(NoExamples("matching"))
    assert str(error.value) == (
        "'matching' draws other examples, which a stream does not have; train this objective on a data set with a "
        "length"
    )


def test_updates_take_the_next_positions():
    updates = StreamUpdates(3, 5, 2)
    assert [[[sample.index for sample in micro] for micro in updates[number]] for number in range(3)] == [
        [[0, 1], [2, 3], [4]],
        [[5, 6], [7, 8], [9]],
        [[10, 11], [12, 13], [14]],
    ]
    assert len(updates) == 3 and updates.micro_batches(0) == 3 and sum(updates.pairs) == 15
