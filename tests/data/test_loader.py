"""The loader: independent of workers and processes."""

import multiprocessing
import os
import re
import signal
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from kit import toys

from mmgen.data import loader
from mmgen.data.collate import Collator
from mmgen.data.loader import MicroBatches, lost_workers_explained, updates
from mmgen.data.plan import Plan, PlanOptions
from mmgen.data.sources import DataStream, Source
from mmgen.errors import DataError, RunError


def plan(examples):
    options = PlanOptions(seed=0, step="s", epochs=2, batch_size=8, micro_batch_size=3)
    return Plan.make(streams(toys.model(), examples), options)


def streams(model, examples):
    return [DataStream(Source(examples), Collator(model, ["caption"]))]


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_loader_workers_change_nothing(workers):
    model, examples = toys.model(), toys.examples(20)
    loaded = list(updates(MicroBatches(streams(model, examples), plan(examples)), workers=workers))
    expected = list(updates(MicroBatches(streams(model, examples), plan(examples))))
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
    worker_streams = streams(model, [replace(examples[0], inputs={}), *examples[1:]])
    with pytest.raises(DataError) as error:
        list(updates(MicroBatches(worker_streams, plan(examples)), workers=workers))
    assert str(error.value) == f"example '{examples[0].id}' has no caption; its inputs are: none"


class Killed(MicroBatches):
    def __getitem__(self, place):
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_worker_is_one_line():
    model, examples = toys.model(), toys.examples(20)
    micro_batches = Killed(streams(model, examples), plan(examples))
    with pytest.raises(RunError) as error, lost_workers_explained("step 's'"):
        list(updates(micro_batches, workers=1))
    assert re.fullmatch(
        r"step 's': a loader worker \(process \d+\) was killed \((Killed|no signal known)\), perhaps because memory "
        r"or shared memory \(/dev/shm\) ran out; run the same command again, with a lower training\.num_workers "
        r"if it recurs; the last checkpoint is kept",
        str(error.value),
    )


@pytest.mark.parametrize(
    ("said", "what"),
    [
        (
            "DataLoader worker (pid 12) is killed by signal: Bus error. It is possible that",
            "process 12) was killed (Bus",
        ),
        ("DataLoader worker (pid(s) 12, 13) exited unexpectedly", "process 12, 13) was killed (no signal known)"),
    ],
)
def test_every_way_in_which_torch_reports_a_lost_worker_is_known(said, what):
    with pytest.raises(RunError) as error, lost_workers_explained("step 's'"):
        raise RuntimeError(said)
    assert what in str(error.value)


def test_other_errors_keep_their_traceback():
    with pytest.raises(RuntimeError, match="^shapes$"), lost_workers_explained("step 's'"):
        raise RuntimeError("shapes")


def test_processes_share_every_update_out_completely():
    """A process has nothing of an update with fewer micro-batches than processes."""
    model, examples = toys.model(), toys.examples(20)
    sizes = [len(update) for update in plan(examples).updates]
    for world in range(1, max(sizes) + 2):
        loaded = [
            [
                [micro for micro, _ in micros]
                for _, micros in updates(MicroBatches(streams(model, examples), plan(examples), rank=rank, world=world))
            ]
            for rank in range(world)
        ]
        shared = [sorted(sum(by_rank, [])) for by_rank in zip(*loaded, strict=True)]
        assert shared == [[*range(size)] for size in sizes]
    assert loaded[-1] == [[] for _ in sizes]


def test_a_loader_that_starts_late_goes_on_where_the_other_stopped():
    model, examples = toys.model(), toys.examples(20)
    all_updates = list(updates(MicroBatches(streams(model, examples), plan(examples))))
    late = list(updates(MicroBatches(streams(model, examples), plan(examples), start=3)))
    assert [(n, [b.ids for _, b in micros]) for n, micros in late] == [
        (n, [b.ids for _, b in micros]) for n, micros in all_updates[3:]
    ]


def test_a_worker_of_a_killed_process_prints_no_broken_connection(monkeypatch):
    """The connection breaks before the worker has another parent. Other errors, and those of a living process, are
    printed."""
    parents, printed = iter([7, 7, 7, 1]), []
    monkeypatch.setattr(os, "getppid", lambda: next(parents, 7))
    clock = iter(range(100))
    monkeypatch.setattr(loader, "time", SimpleNamespace(sleep=lambda _: None, monotonic=lambda: next(clock) / 10))
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, trace: printed.append(kind))
    loader.end_quietly(0)
    sys.excepthook(ConnectionResetError, ConnectionResetError(), None)
    assert printed == []
    for kind in (EOFError, ValueError):
        sys.excepthook(kind, kind(), None)
    assert printed == [EOFError, ValueError]


def test_workers_have_it(monkeypatch):
    """torch calls it in every worker before the first batch."""
    called = multiprocessing.get_context("fork").Value("i", 0)

    def init(worker):
        called.value += 1

    monkeypatch.setattr(loader, "end_quietly", init)
    model, examples = toys.model(), toys.examples(6)
    assert list(updates(MicroBatches(streams(model, examples), plan(examples)), workers=1)) and called.value == 1
