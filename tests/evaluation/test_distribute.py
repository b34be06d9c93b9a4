"""Examples over processes, in batches of similar length."""

from types import SimpleNamespace

import pytest

from mmgen.evaluation import distribute
from mmgen.progress import Progress


def context(rank, world):
    return SimpleNamespace(
        name="s", progress=Progress(), accelerator=SimpleNamespace(num_processes=world, process_index=rank)
    )


@pytest.mark.parametrize("world", [1, 2, 3])
def test_every_example_is_worked_on_once_and_results_are_in_order(monkeypatch, world):
    lengths = [5, 1, 9, 2, 8, 3, 7]
    seen, gathered = [], []

    def work(number, places):
        seen.append([lengths[place] for place in places])
        return [(place, f"{place} by {number}") for place in places]

    def gather(results):  # as if all processes were here
        gathered.extend(results)
        return gathered

    monkeypatch.setattr(distribute, "gather_object", gather)
    for rank in range(world):
        results = distribute.run_distributed(context(rank, world), ("writing", "texts"), lengths, 2, work)
    assert [result.split()[0] for result in results] == [str(place) for place in range(7)]
    assert sorted(length for batch in seen for length in batch) == sorted(lengths)
    assert all(max(batch) - min(batch) <= 2 for batch in seen)  # of similar length
