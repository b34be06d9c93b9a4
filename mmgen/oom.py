"""Work that runs out of memory is done again in halves, down to a single item. When that does not fit, one line says
so."""

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
    f"look for fewer texts at a time (num_beams, num_return_sequences; generate's --n), {ADVICE_SMALLER}"
)
# what libraries below torch say; oneDNN says the first with " descriptor" of what it cannot compute at all
SHORT = re.compile(
    r"could not create a primitive(?! descriptor)|could not create a memory "
    r"object|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED|CUDA error: out of memory|std::bad_alloc"
)
log = logging.getLogger("mmgen")


def out_of_memory(error: Exception) -> bool:
    """Whether a smaller batch might go through."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or should_reduce_batch_size(error):
        return True
    return isinstance(error, RuntimeError) and bool(SHORT.search(str(error)))


@contextlib.contextmanager
def as_run_error(where: str, advice: str) -> Iterator[None]:
    """Raises RunError, with what to do, where memory runs out in work that cannot be done in pieces."""
    try:
        yield
    except Exception as error:
        if not out_of_memory(error):
            raise
        raise RunError(f"{where}: out of memory; {advice}") from None


def halves(items: Sequence[Item], part: Callable[[Item], Sequence[Item]] | None = None) -> list[list[Item]]:
    """Items cut in two. `part`: what a single item is cut into; one that it leaves whole comes back alone."""
    middle = len(items) // 2
    if middle:
        return [list(items[:middle]), list(items[middle:])]
    return [[half] for half in (part(items[0]) if part else items)]


def targets_parted(example: Example) -> list[Example]:
    """An example in two, each with half of its targets; one with a single target stays whole."""
    if len(example.targets) < 2:
        return [example]
    return [replace(example, targets=tuple(half)) for half in halves(example.targets)]


class OomRetry:
    """Does work on batches, as many items at a time as there is memory for.

        retry = OomRetry("step 'both', writing", "use fewer beams")
        for batch in batches:
            for piece, texts in retry.over(batch, generate):
                ...

    What was too much once is not tried again: later batches are done in pieces of the size that went through.

    where   what is being done, as messages begin
    advice  what to do when a single item does not fit
    unit    what an item is called
    named   an item's name
    part    what a single item is cut into, where it does not fit; nothing by default
    say     hears, once the pieces are small enough, how small they are
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
        self.most: int | None = None  # items at a time, once memory has been short
        self._told: int | None = None

    def over(
        self, items: Sequence[Item], work: Callable[[Sequence[Item]], Result]
    ) -> Iterator[tuple[Sequence[Item], Result]]:
        """Pieces of the items, one after another and none left out, and what `work` makes of each. Raises RunError when
        a single item is too much."""
        left = list(items)
        while left:
            piece = left[: self.most]
            for result in self._attempt(piece, work):
                if self.most != self._told:
                    self._told = self.most
                    self.say(
                        f"{self.where}: out of memory; from here on {self.most} {self.unit}{'s' * (self.most != 1)} at "
                        "a time"
                    )
                yield piece, result
                del left[: len(piece)]
                break
            else:
                left[: len(piece)] = [item for half in self._cut(piece) for item in half]

    def _attempt(self, piece: Sequence[Item], work: Callable[[Sequence[Item]], Result]) -> list[Result]:
        """The result; none when memory was short, and then smaller pieces are next."""
        try:
            return [work(piece)]
        except Exception as error:
            if not out_of_memory(error):
                raise
        # only here, behind the error, is what it held let go of
        clear_device_cache(garbage_collection=True)
        return []

    def _cut(self, piece: Sequence[Item]) -> list[list[Item]]:
        """Smaller pieces of one that did not fit. Raises RunError when it cannot be cut."""
        smaller = halves(piece, self.part)
        if len(smaller) == 1:
            raise RunError(
                f"{self.where}: out of memory with a single {self.unit} ('{self.named(piece[0])}'); {self.advice}"
            )
        self.most = len(smaller[0])
        return smaller
