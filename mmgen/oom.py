"""Lack of memory: recognise it, split items and examples in halves, retry down to a single item, or say so."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, TypeVar

import torch
from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size

from .errors import RunError
from .tensors import Example

Item = TypeVar("Item")
Result = TypeVar("Result")
ADVICE_SMALLER = "use shorter inputs, a smaller encoder, or a larger device"
ADVICE_FEWER_TEXTS = (
    f"search for fewer texts at a time (num_beams, num_return_sequences; --n of mmgen generate), {ADVICE_SMALLER}"
)
# messages of libraries below torch; oneDNN's first message with " descriptor" means an unsupported computation
SHORT = re.compile(
    r"could not create a primitive(?! descriptor)|could not create a memory "
    r"object|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED|CUDA error: out of memory|std::bad_alloc"
)
log = logging.getLogger("mmgen")


def out_of_memory(error: Exception) -> bool:
    """Whether a smaller batch might fit."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or should_reduce_batch_size(error):
        return True
    return isinstance(error, RuntimeError) and bool(SHORT.search(str(error)))


@contextlib.contextmanager
def as_run_error(where: str, advice: str) -> Iterator[None]:
    """Raises RunError with `advice` if work that cannot be split runs out of memory."""
    try:
        yield
    except Exception as error:
        if not out_of_memory(error):
            raise
        raise RunError(f"{where}: out of memory; {advice}") from None


def halves(items: Sequence[Item], part: Callable[[Item], Sequence[Item]] | None = None) -> list[list[Item]]:
    """Split items in two. `part` splits a single item; an item that cannot be split is returned alone."""
    middle = len(items) // 2
    if middle:
        return [list(items[:middle]), list(items[middle:])]
    return [[half] for half in (part(items[0]) if part else items)]


def targets_parted(example: Example) -> list[Example]:
    """Split an example in two, each with half of the targets; an example with a single target is not split."""
    if len(example.targets) < 2:
        return [example]
    return [replace(example, targets=tuple(half)) for half in halves(example.targets)]


class OomRetry:
    """Runs work on batches, with as many items at a time as fit into memory.

        retry = OomRetry("step 'both', writing", "use fewer beams")
        for batch in batches:
            for piece, texts in retry.over(batch, generate):
                ...

    A size that failed is not tried again: later batches are split into pieces of the size that worked.

    where   the activity, at the beginning of messages
    advice  what to do if a single item does not fit
    unit    the noun for an item
    named   the name of an item
    part    splits a single item that does not fit; by default items are not split
    say     logs the size of the pieces once they fit
    """

    def __init__(
        self,
        where: str,
        advice: str,
        *,
        unit: str = "example",
        named: Callable[[Any], str] = attrgetter("id"),
        part: Callable[[Any], Sequence[Any]] | None = None,
        say: Callable[[str], None] = log.warning,
    ) -> None:
        self.where, self.advice, self.unit, self.named, self.part, self.say = where, advice, unit, named, part, say
        self.most: int | None = None  # items at a time, after memory has run out
        self._announced: int | None = None

    def over(
        self, items: Sequence[Item], work: Callable[[Sequence[Item]], Result]
    ) -> Iterator[tuple[Sequence[Item], Result]]:
        """Pieces of the items, in order and complete, with the result of `work` for each. Raises RunError if a single
        item does not fit."""
        left = list(items)
        while left:
            piece = left[: self.most]
            for result in self._attempt(piece, work):
                if self.most != self._announced:
                    self._announced = self.most
                    self.say(
                        f"{self.where}: out of memory; from here on {self.most} {self.unit}{'s' * (self.most != 1)} at "
                        "a time"
                    )
                yield piece, result
                del left[: len(piece)]
                break
            else:
                left[: len(piece)] = [item for half in self._split_piece(piece) for item in half]

    def _attempt(self, piece: Sequence[Item], work: Callable[[Sequence[Item]], Result]) -> list[Result]:
        """The result in a list; an empty list if memory ran out, so that smaller pieces follow."""
        try:
            return [work(piece)]
        except Exception as error:
            if not out_of_memory(error):
                raise
        # only after the except block are the tensors held by the error released
        clear_device_cache(garbage_collection=True)
        return []

    def _split_piece(self, piece: Sequence[Item]) -> list[list[Item]]:
        """Split a piece that did not fit. Raises RunError if it cannot be split."""
        smaller = halves(piece, self.part)
        if len(smaller) == 1:
            raise RunError(
                f"{self.where}: out of memory with a single {self.unit} ('{self.named(piece[0])}'); {self.advice}"
            )
        self.most = len(smaller[0])
        return smaller
