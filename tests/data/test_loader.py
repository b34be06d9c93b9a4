"""The loader: independent of workers and processes."""

from dataclasses import replace

import pytest
import torch
from kit import toys

from mmgen.data.collate import Collator
from mmgen.data.loader import MicroBatches, share, updates
from mmgen.data.plan import Plan, PlanOptions
from mmgen.data.sources import DataStream, Source
from mmgen.errors import DataError


def plan(examples):
    options = PlanOptions(seed=0, step="s", epochs=2, batch_size=8, micro_batch_size=3)
    return Plan.make(pools(toys.model(), examples), options)


def pools(model, examples):
    return [DataStream(Source(examples), Collator(model, ["caption"]))]


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_loader_workers_change_nothing(workers):
    model, examples = toys.model(), toys.examples(20)
    loaded = list(updates(MicroBatches(pools(model, examples), plan(examples)), workers=workers))
    expected = list(updates(MicroBatches(pools(model, examples), plan(examples))))
    assert [number for number, _ in loaded] == list(range(len(plan(examples))))
    for (_, micros), (_, expected_micros) in zip(loaded, expected, strict=True):
        for (place, batch), (expected_place, expected_batch) in zip(micros, expected_micros, strict=True):
            assert (
                place == expected_place
                and batch.ids == expected_batch.ids
                and torch.equal(batch.tail.ids, expected_batch.tail.ids)
            )


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_of_a_worker_is_the_readers_own_line(workers):
    model, examples = toys.model(), toys.examples(20)
    worker_pools = pools(model, [replace(examples[0], inputs={}), *examples[1:]])
    with pytest.raises(DataError) as error:
        list(updates(MicroBatches(worker_pools, plan(examples)), workers=workers))
    assert str(error.value) == f"example '{examples[0].id}' has no caption; its inputs are: none"


def test_processes_share_every_update_out_completely():
    for micros in range(1, 7):
        for world in range(1, 5):
            real = [m for rank in range(min(world, micros)) for m in share(micros, rank, world)]
            assert sorted(real) == list(range(micros))
            assert all(share(micros, rank, world) == [micros - 1] for rank in range(micros, world))


def test_a_loader_that_starts_late_goes_on_where_the_other_stopped():
    model, examples = toys.model(), toys.examples(20)
    all_updates = list(updates(MicroBatches(pools(model, examples), plan(examples))))
    late = list(updates(MicroBatches(pools(model, examples), plan(examples), start=3)))
    assert [(n, [b.ids for _, b in micros]) for n, micros in late] == [
        (n, [b.ids for _, b in micros]) for n, micros in all_updates[3:]
    ]
