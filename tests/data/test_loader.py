"""The loader: independent of workers and processes."""

import multiprocessing
from dataclasses import replace

import pytest
import torch
from kit import toys
from kit.refusals import refusal

from mmgen.data.collate import Collator, DataStream, Source
from mmgen.data.loader import updates
from mmgen.data.plan import Plan
from mmgen.data.seeds import RngKey
from mmgen.data.sizes import Sizes
from mmgen.recipe.training import Training


def stream(examples=None):
    examples = examples or toys.examples(20)
    return DataStream(Source(examples), Collator(toys.model(), ["caption"]))


def plan():
    training = Training(epochs=2, batch_size=8, length_bucket=1)
    return Plan([Sizes(stream().source.examples, stream().collate)], RngKey(0, "s"), training)


def load(data=None, **changes):
    return updates([data or stream()], plan(), 3, **changes)


@pytest.fixture(params=["fork", pytest.param("forkserver", marks=pytest.mark.slow)])
def start_method(request):
    """How Python starts workers: 3.14 and later do not fork, so that all that a worker needs is pickled."""
    before = multiprocessing.get_start_method()
    multiprocessing.set_start_method(request.param, force=True)
    yield request.param
    multiprocessing.set_start_method(before, force=True)


@pytest.mark.slow
def test_loader_workers_change_nothing(start_method):
    loaded, expected = list(load(workers=2)), list(load())
    assert [number for number, _ in loaded] == list(range(len(plan())))
    for (_, micros), (_, expected_micros) in zip(loaded, expected, strict=True):
        for (*place, batch), (*expected_place, expected_batch) in zip(micros, expected_micros, strict=True):
            assert (
                place == expected_place
                and batch.ids == expected_batch.ids
                and torch.equal(batch.tail.ids, expected_batch.tail.ids)
                and torch.equal(batch.inputs["caption"]["ids"], expected_batch.inputs["caption"]["ids"])
            )


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_of_a_worker_is_the_readers_own_line(workers, start_method):
    examples = toys.examples(20)
    stopped = load(stream([replace(examples[0], inputs={}), *examples[1:]]), workers=workers)
    assert refusal(list, stopped) == f"example '{examples[0].id}' has no caption; its inputs are: none"


@pytest.mark.slow
def test_processes_share_every_update_out_completely():
    """A process has nothing of an update with fewer micro-batches than processes."""
    sizes = [len(plan().update(number, 3)) for number in range(len(plan()))]
    for world in range(1, max(sizes) + 2):
        loaded = [[[micro for micro, *_ in micros] for _, micros in load(share=(rank, world))] for rank in range(world)]
        shared = [sorted(sum(by_rank, [])) for by_rank in zip(*loaded, strict=True)]
        assert shared == [[*range(size)] for size in sizes]
    assert loaded[-1] == [[] for _ in sizes]


def test_a_loader_that_starts_late_goes_on_where_the_other_stopped():
    all_updates, late = list(load()), list(load(start=3))
    assert [(n, [b.ids for *_, b in micros]) for n, micros in late] == [
        (n, [b.ids for *_, b in micros]) for n, micros in all_updates[3:]
    ]
