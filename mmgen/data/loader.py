"""The loader: workers collate the micro-batches of a process, its share of each update; the time it waits for them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch.utils.data import DataLoader, get_worker_info

from ..errors import MmgenError, PluginError, RunError
from ..registry import blame
from ..tensors import Batch, Example
from .collate import Collator
from .plan import Plan
from .sources import DataStream

T = TypeVar("T")
LOST_WORKER = re.compile(r"DataLoader worker \(pid(\(s\))? [\d, ]+\) (is killed|exited)")


@dataclass(frozen=True)
class Task:
    """A micro-batch to collate, with its examples: a worker has no data.

    update, micro  its place in the plan
    epochs         of the examples, for random draws
    """

    update: int
    micro: int
    source: int
    examples: Sequence[Example]
    epochs: Sequence[int]


class _Collators(torch.utils.data.Dataset):
    """What a worker has: the collator of each source. A MmgenError, or a plugin's error in a line, is returned, not
    raised, since torch would wrap a worker's error in pages of traceback."""

    def __init__(self, collators: Sequence[Collator]) -> None:
        self.collators = collators

    def __getitem__(self, task: Task) -> tuple[int, int, int, Batch | MmgenError]:
        place = task.update, task.micro, task.source
        try:
            return *place, self.collators[task.source](task.examples, task.epochs)
        except MmgenError as error:
            return *place, error
        except Exception as error:
            if get_worker_info() is None or not (line := blame(error)):
                raise
            return *place, PluginError(line)


@dataclass(frozen=True)
class _Tasks(torch.utils.data.Sampler):
    """The tasks of one process from an update on, made as workers need them."""

    streams: Sequence[DataStream]
    plan: Plan
    micro_batch_size: int
    start: int
    share: tuple[int, int]

    def __iter__(self) -> Iterator[Task]:
        rank, world = self.share
        for update in range(self.start, len(self.plan)):
            micro_batches = self.plan.update(update, self.micro_batch_size)
            for micro in range(rank, len(micro_batches), world):
                batch = micro_batches[micro]
                examples = self.streams[batch.source].source.examples
                chosen = [examples[index] for index in batch.indices.tolist()]
                yield Task(update, micro, batch.source, chosen, batch.passes.tolist())


def updates(
    streams: Sequence[DataStream],
    plan: Plan,
    micro_batch_size: int,
    start: int = 0,
    share: tuple[int, int] = (0, 1),
    workers: int = 0,
    pin: bool = False,
) -> Iterator[tuple[int, list[tuple[int, int, Batch]]]]:
    """(update, its micro-batches) for one process, to the end of the plan; a micro-batch follows its number in the
    update and its source. `share`: the number of the process, and of how many. A process has none of an update with
    fewer micro-batches than processes. Raises the readers' MmgenError, the same one for any number of workers."""
    loader = DataLoader(
        _Collators([stream.collate for stream in streams]),
        batch_size=None,
        sampler=_Tasks(streams, plan, micro_batch_size, start, share),
        num_workers=workers,
        pin_memory=pin,
    )
    current, gathered = start, list[tuple[int, int, Batch]]()
    for update, micro, source, batch in loader:
        if isinstance(batch, MmgenError):
            raise batch
        while current < update:
            yield current, gathered
            current, gathered = current + 1, []
        gathered.append((micro, source, batch))
    for number in range(current, len(plan)):
        yield number, gathered
        gathered = []


@contextmanager
def lost_workers_explained(place: str) -> Iterator[None]:
    """Raises a RunError when the system has killed a worker. Must surround all that is done with the batches: torch
    raises its error wherever the process happens to be, not only where it waits for a batch."""
    try:
        yield
    except RuntimeError as error:
        if not LOST_WORKER.search(f"{error.__cause__} {error}"):
            raise
        raise RunError(
            f"{place}: a loader worker was killed, perhaps because memory or shared memory (/dev/shm) ran out; run the "
            "same command again, with a lower training.num_workers if it recurs; the last checkpoint is kept"
        ) from error


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
