"""Several processes as one: what they know is brought together, and when one of them ends the others say so.

Processes are started by `accelerate launch` or `torchrun`; alone, all of this does nothing. Gradients are added up here
and not by DistributedDataParallel while it goes backward, so that a process which runs out of memory half-way leaves no
other waiting: all of them learn of it before anything is added up.
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
from .meeting import leave_at_exit, meet, world_size

PATIENCE = timedelta(hours=12)  # the others wait while the first extracts features or scores
TOGETHER_BYTES = 64 << 20  # tensors are sent in lots of this size
LOST = re.compile(r"connection (closed|reset|refused)|broken pipe|socket|timed? ?out|peer|gloo|nccl", re.IGNORECASE)


def start() -> Accelerator:
    """The processes there are, and the device of this one. They leave in order when Python ends. Raises RunError when
    they do not find together."""
    wanted, met_at = world_size(), meet()
    on_cpus = (
        wanted > 1 and not torch.cuda.is_available()
    )  # accelerate must be told that CPUs are meant, or each is a run of its own
    group = InitProcessGroupKwargs(timeout=PATIENCE)
    if group.backend == "nccl":
        refuse_shared_gpus(int(os.environ.get("LOCAL_WORLD_SIZE", wanted)), torch.cuda.device_count())
    accelerator = Accelerator(cpu=on_cpus, kwargs_handlers=[group])
    if accelerator.num_processes != wanted:
        raise RunError(
            f"{wanted} processes were started, but this one finds {accelerator.num_processes}; start them with "
            "`torchrun --nproc-per-node N -m mmgen run ...`"
        )
    if not accelerator.is_main_process:
        for name in ("mmgen", LEARNING):
            logging.getLogger(name).setLevel(logging.WARNING)  # what is said is said once
    if wanted > 1:
        leave_at_exit()
    del met_at  # the process group has a store of its own by now
    return accelerator


def refuse_shared_gpus(processes: int, gpus: int) -> None:
    """Raises RunError where processes of this machine would share a GPU: NCCL fails then, at their first sum."""
    if 0 < gpus < processes:
        raise RunError(
            f"{processes} processes were started on a machine with {gpus} GPU{'s' * (gpus > 1)}, and each needs one of "
            f"its own; start {gpus}: `torchrun --nproc-per-node {gpus} -m mmgen run ...`"
        )


def all_reduce_sum(accelerator: Accelerator, tensors: Sequence[Tensor]) -> None:
    """Every tensor becomes the sum of itself over all processes, to the same bits everywhere."""
    if accelerator.num_processes == 1:
        return
    for lot in _lots(tensors):
        together = torch.cat([tensor.flatten() for tensor in lot])
        distributed.all_reduce(together)
        _hand_out(together, lot)


@torch.no_grad()
def broadcast(accelerator: Accelerator, tensors: Sequence[Tensor]) -> None:
    """Every tensor becomes the first process's."""
    if accelerator.num_processes == 1:
        return
    for lot in _lots(tensors):
        together = torch.cat([tensor.flatten() for tensor in lot]).to(
            accelerator.device
        )  # a sharded model waits on the CPU
        distributed.broadcast(together, 0)
        _hand_out(together, lot)


def any_rank(accelerator: Accelerator, flags: Sequence[bool]) -> list[bool]:
    """For every flag, whether it is up in any process."""
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
    """Raises RunError, where this process waits for one that has died, in place of the network's own error."""
    try:
        yield
    except RuntimeError as error:  # torch's network errors are, and gloo's are nothing more
        if accelerator.num_processes == 1 or not (isinstance(error, distributed.DistError) or LOST.search(str(error))):
            raise
        raise RunError(
            f"process {accelerator.process_index} of {accelerator.num_processes}: another process has ended "
            f"({str(error).strip().splitlines()[0]}); "
            "what it said last is above, or in its own output; the same command goes on from the last checkpoint"
        ) from None


def _lots(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Tensors of one kind, as many at a time as fit into `TOGETHER_BYTES`."""
    for dtype in dict.fromkeys(tensor.dtype for tensor in tensors):
        lot, size = [], 0
        for tensor in tensors:
            if tensor.dtype == dtype:
                lot.append(tensor)
                size += tensor.nbytes
                if size >= TOGETHER_BYTES:
                    yield lot
                    lot, size = [], 0
        if lot:
            yield lot


def _hand_out(together: Tensor, lot: Sequence[Tensor]) -> None:
    for tensor, part in zip(lot, together.split([tensor.numel() for tensor in lot]), strict=True):
        tensor.copy_(part.view_as(tensor))
