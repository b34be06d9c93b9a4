"""Distribute the examples of a split over processes, in batches of similar length."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from accelerate.utils import gather_object

from ..data.collate import by_length
from ..training.context import StepContext

Result = TypeVar("Result")


def run_distributed(
    context: StepContext,
    doing: tuple[str, str],
    lengths: Sequence[float],
    batch_size: int,
    work: Callable[[int, Sequence[int]], Iterable[tuple[int, Result]]],
) -> list[Result]:
    """The results of `work` for all examples, in order; complete only in the main process.

    doing    activity and unit for the progress bar: "writing", "texts"
    lengths  length of each example
    work     number of a batch and indices of its examples -> (index, result) for each of them
    """
    accelerator = context.accelerator
    results: list[tuple[int, Result]] = []
    with context.progress.task(f"{context.name}: {doing[0]}", len(lengths), doing[1]) as advance:
        for number, places in enumerate(by_length(lengths, batch_size)):
            if number % accelerator.num_processes == accelerator.process_index:
                results += work(number, places)
            advance(len(places))
    if accelerator.num_processes > 1:
        results = gather_object(results)
    return [result for _, result in sorted(results, key=lambda pair: pair[0])]
