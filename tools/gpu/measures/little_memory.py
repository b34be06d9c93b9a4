"""Memory that ends: the allocator of a GPU is given less; without one, the model refuses to do many rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from mmgen.model import Model


class Memory:
    """A device's memory. What comes and goes is cut to a share, what stays is left alone.

    failures  how often memory was short
    """

    def __init__(self, device: str) -> None:
        self.on_gpu, self.failures = device.startswith("cuda"), 0

    @contextmanager
    def measured(self, counts: dict[str, int]) -> Iterator[None]:
        """`peak`: bytes that were held at once, at most."""
        if self.on_gpu:
            torch.cuda.reset_peak_memory_stats()
        yield
        counts["peak"] = torch.cuda.max_memory_allocated() if self.on_gpu else 0

    @contextmanager
    def short(self, limit: int, composed: Model, rows: int) -> Iterator[None]:
        """So many bytes on a GPU, so many rows at a time elsewhere, until the block ends."""
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
    """A model that runs out of memory at the end of its work on more rows than `most`."""
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
