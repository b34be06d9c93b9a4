"""The loader: workers collate the micro-batches of a process, its share of each update."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch.utils.data import DataLoader, get_worker_info

from ..errors import MmgenError, PluginError
from ..registry import blame
from ..tensors import Batch, Example
from .collate import Collator
from .plan import Plan
from .sources import DataStream


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

    def __getitem__(self, task: Task) -> tuple[int, int, Batch | MmgenError]:
        try:
            return task.update, task.micro, self.collators[task.source](task.examples, task.epochs)
        except MmgenError as error:
            return task.update, task.micro, error
        except Exception as error:
            if get_worker_info() is None or not (line := blame(error)):
                raise
            return task.update, task.micro, PluginError(line)


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
) -> Iterator[tuple[int, list[tuple[int, Batch]]]]:
    """(update, its micro-batches) for one process, to the end of the plan; a micro-batch follows its number in the
    update. `share`: the number of the process, and of how many. A process has none of an update with
    fewer micro-batches than processes. Raises the readers' MmgenError, the same one for any number of workers."""
    loader = DataLoader(
        _Collators([stream.collate for stream in streams]),
        batch_size=None,
        sampler=_Tasks(streams, plan, micro_batch_size, start, share),
        num_workers=workers,
        pin_memory=pin,
    )
    current, gathered = start, list[tuple[int, Batch]]()
    for update, micro, batch in loader:
        if isinstance(batch, MmgenError):
            raise batch
        while current < update:
            yield current, gathered
            current, gathered = current + 1, []
        gathered.append((micro, batch))
    for number in range(current, len(plan)):
        yield number, gathered
        gathered = []
