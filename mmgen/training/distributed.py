"""Several processes that train together: sums over processes, broadcasts, and errors when one process ends.

Processes are started by `accelerate launch` or `torchrun`; in a single process these functions do nothing. Gradients
are summed here, and not by DistributedDataParallel during the backward pass, so that a process that runs out of memory
does not leave the others waiting: all processes know of it before the sum.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta

import torch
from accelerate import Accelerator
from accelerate.utils import InitProcessGroupKwargs, gather_object
from torch import Tensor, distributed

from ..commands import LEARNING
from ..errors import RunError
from .rendezvous import leave_at_exit, meet, world_size

PATIENCE = timedelta(hours=12)  # the other processes wait while the first extracts features or scores
CHUNK_BYTES = 64 << 20  # tensors are sent in chunks of this size
LOST = re.compile(r"connection (closed|reset|refused)|broken pipe|socket|timed? ?out|peer|gloo|nccl", re.IGNORECASE)


def start() -> Accelerator:
    """Connect the processes, and choose the device of this one. They disconnect when Python ends. Raises RunError if
    they cannot connect."""
    expected, store = world_size(), meet()
    on_cpus = expected > 1 and not torch.cuda.is_available()  # without cpu=True accelerate would run each process alone
    group = InitProcessGroupKwargs(timeout=PATIENCE)
    if group.backend == "nccl":
        refuse_shared_gpus(int(os.environ.get("LOCAL_WORLD_SIZE", expected)), torch.cuda.device_count())
    accelerator = Accelerator(cpu=on_cpus, kwargs_handlers=[group])
    if accelerator.num_processes != expected:
        raise RunError(
            f"{expected} processes were started, but this one finds {accelerator.num_processes}; start them with "
            "`torchrun --nproc-per-node N -m mmgen run ...`"
        )
    if not accelerator.is_main_process:
        for name in ("mmgen", LEARNING):
            logging.getLogger(name).setLevel(logging.WARNING)  # messages appear once
    if expected > 1:
        leave_at_exit()
    del store  # the process group has its own store now
    return accelerator


def refuse_shared_gpus(processes: int, gpus: int) -> None:
    """Raises RunError if processes of this machine would share a GPU: NCCL would fail at the first sum."""
    if 0 < gpus < processes:
        raise RunError(
            f"{processes} processes were started on a machine with {gpus} GPU{'s' * (gpus > 1)}, but each process "
            f"needs a GPU; start {gpus}: `torchrun --nproc-per-node {gpus} -m mmgen run ...`"
        )


def all_reduce_sum(accelerator: Accelerator, tensors: Sequence[Tensor]) -> None:
    """Replace every tensor by its sum over all processes, with the same bits in every process."""
    if accelerator.num_processes == 1:
        return
    for lot in _chunks_of_one_dtype(tensors):
        together = torch.cat([tensor.flatten() for tensor in lot])
        distributed.all_reduce(together)
        _copy_back(together, lot)


@torch.no_grad()
def broadcast(accelerator: Accelerator, tensors: Sequence[Tensor]) -> None:
    """Replace every tensor by that of the first process."""
    if accelerator.num_processes == 1:
        return
    for lot in _chunks_of_one_dtype(tensors):
        together = torch.cat([tensor.flatten() for tensor in lot])
        distributed.broadcast(together, 0)
        _copy_back(together, lot)


def any_rank(accelerator: Accelerator, flags: Sequence[bool]) -> list[bool]:
    """For every flag, whether it is true in any process."""
    if accelerator.num_processes == 1:
        return list(flags)
    raised = torch.tensor(flags, dtype=torch.int32, device=accelerator.device)
    distributed.all_reduce(raised)
    return [count > 0 for count in raised.tolist()]


def gather_texts(accelerator: Accelerator, texts: list[str]) -> list[str]:
    """The texts of all processes, in their order."""
    return gather_object(texts) if accelerator.num_processes > 1 else texts


@contextlib.contextmanager
def peer_failures(accelerator: Accelerator) -> Iterator[None]:
    """Raises RunError instead of a network error if this process waits for a process that has ended."""
    try:
        yield
    except RuntimeError as error:  # torch's network errors are, and gloo's are nothing more
        if accelerator.num_processes == 1 or not (isinstance(error, distributed.DistError) or LOST.search(str(error))):
            raise
        raise RunError(
            f"process {accelerator.process_index} of {accelerator.num_processes}: another process has ended "
            f"({str(error).strip().splitlines()[0]}); "
            "its last message is above, or in its output; the same command resumes from the last checkpoint"
        ) from None


def _chunks_of_one_dtype(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Tensors of one dtype, in chunks of about `CHUNK_BYTES`."""
    for dtype in dict.fromkeys(tensor.dtype for tensor in tensors):
        lot, size = [], 0
        for tensor in tensors:
            if tensor.dtype == dtype:
                lot.append(tensor)
                size += tensor.nbytes
                if size >= CHUNK_BYTES:
                    yield lot
                    lot, size = [], 0
        if lot:
            yield lot


def _copy_back(together: Tensor, lot: Sequence[Tensor]) -> None:
    for tensor, part in zip(lot, together.split([tensor.numel() for tensor in lot]), strict=True):
        tensor.copy_(part.view_as(tensor))
