"""Shared out: the examples of a split in batches of like length, one process's batches beside another's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from accelerate.utils import gather_object

from ..data.collate import by_length
from ..training.context import StepContext

Made = TypeVar("Made")


def shared_out(
    context: StepContext,
    doing: tuple[str, str],
    lengths: Sequence[float],
    batch_size: int,
    work: Callable[[int, Sequence[int]], Iterable[tuple[int, Made]]],
) -> list[Made]:
    """What `work` makes of every example, in their order; whole in the main process alone.

    doing    what is done, and to what: "writing", "texts"
    lengths  how long each example is
    work     a batch's number and the places of its examples -> (place, what is made), for each of them
    """
    accelerator = context.accelerator
    found: list[tuple[int, Made]] = []
    with context.progress.task(f"{context.name}: {doing[0]}", len(lengths), doing[1]) as advance:
        for number, places in enumerate(by_length(lengths, batch_size)):
            if number % accelerator.num_processes == accelerator.process_index:
                found += work(number, places)
            advance(len(places))
    if accelerator.num_processes > 1:
        found = gather_object(found)
    return [made for _, made in sorted(found, key=lambda pair: pair[0])]
