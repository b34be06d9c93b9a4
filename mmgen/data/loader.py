"""The loader: workers collate the micro-batches of a process, its share of each update; the time it waits for them."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TypeVar

import torch
from torch.utils.data import DataLoader

from ..errors import MmgenError, RunError
from ..tensors import Batch
from .plan import DataStream, Plan

T = TypeVar("T")
LOST_WORKER = re.compile(
    r"DataLoader worker \(pid(?:\(s\))? (?P<pid>[\d, ]+)\)(?: is killed by signal: (?P<signal>[^.]+))?"
)


class MicroBatches(torch.utils.data.Dataset):
    """The micro-batches of one process from the update `start` on; any worker may collate item i. A MmgenError is
    returned, not raised, since torch would wrap a worker's error in pages of traceback."""

    def __init__(
        self,
        streams: Sequence[DataStream],
        plan: Plan,
        start: int = 0,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self.streams, self.plan, self.start = streams, plan, start
        self.places = [
            (update, micro)
            for update in range(start, len(plan))
            for micro in range(rank, plan.updates.micro_batches(update), world)
        ]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, place: int) -> tuple[int, int, Batch | MmgenError]:
        update, micro = self.places[place]
        samples = self.plan.updates[update][micro]
        stream = self.streams[samples[0].source]
        try:
            return update, micro, stream.batch([(stream.examples[sample.index], sample.epoch) for sample in samples])
        except MmgenError as error:
            return update, micro, error


def updates(
    micro_batches: MicroBatches, *, workers: int = 0, pin: bool = False
) -> Iterator[tuple[int, list[tuple[int, Batch]]]]:
    """(update, its micro-batches with their numbers) for one process, to the end of the plan; a process has none of an
    update with fewer micro-batches than processes. Raises the readers' MmgenError, with the same message for any number
    of workers."""
    loader = DataLoader(
        micro_batches,
        batch_size=None,
        num_workers=workers,
        pin_memory=pin,
        persistent_workers=False,
        worker_init_fn=end_quietly,
    )
    current = micro_batches.start
    gathered: list[tuple[int, Batch]] = []
    for update, micro, batch in loader:
        if isinstance(batch, MmgenError):
            raise batch
        while current < update:
            yield current, gathered
            current, gathered = current + 1, []
        gathered.append((micro, batch))
    for number in range(current, len(micro_batches.plan)):
        yield number, gathered
        gathered = []


@contextmanager
def lost_workers_explained(place: str) -> Iterator[None]:
    """Raises a RunError when the system has killed a worker. Must surround all that is done with the batches: torch
    raises its error wherever the process happens to be, not only where it waits for a batch."""
    try:
        yield
    except RuntimeError as error:
        if not (lost := LOST_WORKER.search(f"{error.__cause__} {error}")):  # the cause alone may know the signal
            raise
        raise RunError(
            f"{place}: a loader worker (process {lost['pid']}) was killed ({lost['signal'] or 'no signal known'}), "
            "perhaps because memory or shared memory (/dev/shm) ran out; run the same command again, with a lower "
            "training.num_workers if it recurs; the last checkpoint is kept"
        ) from error


def end_quietly(worker: int) -> None:
    """In a worker: a broken connection is not printed as a traceback if the process that loads has been killed. The
    system closes the connections of a killed process before it gives its children another parent."""
    parent, report = os.getppid(), sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        until = time.monotonic() + 1
        while issubclass(kind, ConnectionError | EOFError) and time.monotonic() < until:
            if os.getppid() != parent:
                return
            time.sleep(0.01)
        report(kind, error, trace)

    sys.excepthook = hook


def time_batches(batches: Iterable[T], waits: list[float]) -> Iterator[T]:
    """The same batches. Appends the seconds waited for each to `waits`."""
    source = iter(batches)
    while True:
        began = time.perf_counter()
        batch = next(source, None)
        if batch is None:
            return
        waits.append(time.perf_counter() - began)
        yield batch
