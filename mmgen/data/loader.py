"""The loader: workers collate the micro-batches of a process, its share of each update."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import torch
from torch.utils.data import DataLoader, get_worker_info

from ..errors import MmgenError, as_mmgen_error
from ..examples import Example
from ..tensors import Batch
from .collate import Collator, DataStream
from .plan import Plan

Task = tuple[int, int, int, list[Example], list[int]]  # update, micro-batch, source, its examples and their epochs


class _Collators(torch.utils.data.Dataset):
    """What a worker has: the collator of each source; the examples come with a task. A MmgenError, or a plugin's error
    in a line, is returned, not raised, since torch would wrap a worker's error in pages of traceback."""

    def __init__(self, collators: Sequence[Collator]) -> None:
        self.collators = collators

    def __getitem__(self, task: Task) -> tuple[int, int, Batch | MmgenError]:
        update, micro, source, examples, epochs = task
        try:
            return update, micro, self.collators[source](examples, epochs)
        except Exception as error:
            if get_worker_info() is None or not (known := as_mmgen_error(error)):
                raise
            return update, micro, known


def _tasks(
    streams: Sequence[DataStream], plan: Plan, micro_batch_size: int, start: int, share: tuple[int, int]
) -> Iterator[Task]:
    """The tasks of one process from an update on, made as workers need them."""
    rank, world = share
    for update in range(start, len(plan)):
        for micro, batch in [*enumerate(plan.update(update, micro_batch_size))][rank::world]:
            examples = streams[batch.source].source.examples
            chosen = [examples[index] for index in batch.indices.tolist()]
            yield update, micro, batch.source, chosen, batch.passes.tolist()


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
        sampler=_tasks(streams, plan, micro_batch_size, start, share),
        num_workers=workers,
        pin_memory=pin,
    )
    current, gathered = start, list[tuple[int, Batch]]()
    for update, micro, batch in chain(loader, [(len(plan), 0, None)]):
        if isinstance(batch, MmgenError):
            raise batch
        for number in range(current, update):
            yield number, gathered
            gathered = []
        current = update
        gathered.append((micro, batch))
