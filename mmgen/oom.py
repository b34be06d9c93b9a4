"""Lack of memory: recognise it, split items in halves, retry down to a single item, or say so."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import torch
from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size

from .errors import RunError

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
    say     logs the size of the pieces once they fit
    """

    def __init__(
        self,
        where: str,
        advice: str,
        *,
        unit: str = "example",
        named: Callable[[Any], str] = attrgetter("id"),
        say: Callable[[str], None] = log.warning,
    ) -> None:
        self.where, self.advice, self.unit, self.named, self.say = where, advice, unit, named, say
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
            try:
                result, fits = work(piece), True
            except Exception as error:
                if not out_of_memory(error):
                    raise
                fits = False
            if not fits:  # only after the except block are the tensors held by the error released
                clear_device_cache(garbage_collection=True)
                self.most = len(piece) // 2
                if not self.most:
                    name = self.named(piece[0])
                    raise RunError(f"{self.where}: out of memory with a single {self.unit} ('{name}'); {self.advice}")
                continue
            if self.most != self._announced:
                self._announced = self.most
                items_now = f"{self.most} {self.unit}{'s' * (self.most != 1)}"
                self.say(f"{self.where}: out of memory; from here on {items_now} at a time")
            yield piece, result
            del left[: len(piece)], result
