"""The plan of a stream: each update takes the next positions."""

from mmgen.data.stream_plan import StreamUpdates


def test_updates_take_the_next_positions():
    updates = StreamUpdates(3, 5, 2)
    assert [[[sample.index for sample in micro] for micro in updates[number]] for number in range(3)] == [
        [[0, 1], [2, 3], [4]],
        [[5, 6], [7, 8], [9]],
        [[10, 11], [12, 13], [14]],
    ]
    assert len(updates) == 3 and updates.micro_batches(0) == 3 and sum(updates.pairs) == 15
