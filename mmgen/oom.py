"""Work that runs out of memory is done again in halves, down to a single item; when that does not fit, a line says
so."""

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
ADVICE_SMALLER = "use shorter inputs (max_regions), a smaller encoder, or a larger device"
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


class OomRetry:
    """Does work on batches, as many items at a time as there is memory for.

        halving = Halving("step 'both', writing", "use fewer beams")
        for batch in batches:
            for piece, texts in halving.over(batch, generate):
                ...

    What was too much once is not tried again: later batches are done in pieces of the size that went through.

    where   what is being done, as messages begin
    advice  what to do when a single item does not fit
    unit    what an item is called
    named   an item's name
    say     hears, once the pieces are small enough, how small they are
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
        self.most: int | None = None  # items at a time, once memory has been short
        self._told: int | None = None

    def over(
        self, items: Sequence[Item], work: Callable[[Sequence[Item]], Result]
    ) -> Iterator[tuple[Sequence[Item], Result]]:
        """Pieces of the items, one after another and none left out, and what `work` makes of each. Raises RunError when
        a single item is too much."""
        done = 0
        while done < len(items):
            piece = items[done : done + self.most] if self.most else items[done:]
            for result in self._attempt(piece, work):
                if self.most != self._told:
                    self._told = self.most
                    self.say(
                        f"{self.where}: out of memory; from here on {self.most} {self.unit}{'s' * (self.most != 1)} at "
                        "a time"
                    )
                yield piece, result
                done += len(piece)

    def _attempt(self, piece: Sequence[Item], work: Callable[[Sequence[Item]], Result]) -> list[Result]:
        """The result; none when memory was short, and then smaller pieces are next."""
        try:
            return [work(piece)]
        except Exception as error:
            if not out_of_memory(error):
                raise
        # only here, behind the error, is what it held let go of
        clear_device_cache(garbage_collection=True)
        if len(piece) == 1:
            raise RunError(
                f"{self.where}: out of memory with a single {self.unit} ('{self.named(piece[0])}'); {self.advice}"
            )
        self.most = len(piece) // 2
        return []
