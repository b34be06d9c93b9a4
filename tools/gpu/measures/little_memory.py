"""Little memory: a GPU's allocator gets a limit; without a GPU, the model refuses large batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from mmgen.model import Model


class Memory:
    """A device's memory. Temporary memory is cut to a share; permanent memory is unchanged."""

    def __init__(self, device: str) -> None:
        self.on_gpu, self.failures = device.startswith("cuda"), 0

    @contextmanager
    def measured(self, counts: dict[str, int]) -> Iterator[None]:
        """Measure the memory of a block. `peak`: the most bytes held at once."""
        if self.on_gpu:
            torch.cuda.reset_peak_memory_stats()
        yield
        counts["peak"] = torch.cuda.max_memory_allocated() if self.on_gpu else 0

    @contextmanager
    def short(self, limit: int, composed: Model, rows: int) -> Iterator[None]:
        """Limit the memory within a block: bytes on a GPU, rows at a time elsewhere."""
        if not self.on_gpu:
            with _refusing(composed, rows, self._fail):
                yield
            return
        before = _ooms()
        torch.cuda.set_per_process_memory_fraction(min(1.0, limit / torch.cuda.get_device_properties(0).total_memory))
        try:
            yield
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
            self.failures += _ooms() - before

    def _fail(self) -> None:
        self.failures += 1


def _ooms() -> int:
    return torch.cuda.memory_stats().get("num_ooms", 0)


@contextmanager
def _refusing(composed: Model, most: int, failed: Callable[[], None]) -> Iterator[None]:
    """Make a model run out of memory at the end of its work on more rows than `most`."""
    forward, write = composed.forward, composed.generator.generate

    def checked(batch, counts):
        if len(batch.ids) > most:
            failed()
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return counts

    composed.forward = lambda batch: checked(batch, forward(batch))
    composed.generator.generate = lambda owner, batch, options: checked(batch, write(owner, batch, options))
    try:
        yield
    finally:
        composed.forward, composed.generator.generate = forward, write
