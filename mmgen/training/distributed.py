"""Several processes that train together: start and end, waiting, sums, broadcasts; errors when one process ends.

`torchrun` or `accelerate launch` starts the processes; in a single process these functions do nothing. Gradients are
summed here, and not by DistributedDataParallel during the backward pass, so that a process that runs out of memory
does not leave the others waiting: all processes know of it before the sum.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import torch
from accelerate import PartialState
from torch import Tensor, distributed

from ..errors import RunError

PATIENCE = timedelta(minutes=10)  # of a process that waits for the others, at the start and in a sum
LOST = re.compile(r"connection (closed|reset|refused)|broken pipe|socket|timed? ?out|peer|gloo|nccl", re.IGNORECASE)
HOW = (
    "start all together with `torchrun --nproc-per-node N -m mmgen run ...`, or run "
    "`unset WORLD_SIZE RANK LOCAL_RANK` for one process"
)


class Processes(PartialState):
    """The processes that work together: how many, which of them is this one, and its device. `meetings`: how
    often they have waited for each other."""

    meetings = 0

    def wait_for_everyone(self) -> None:
        """Wait for the first process however long it works alone (it extracts features, or scores), then for the others
        with the usual patience."""
        if self.num_processes == 1:
            return
        store = distributed.distributed_c10d._get_default_store()
        if self.is_main_process:
            store.add("mmgen", 1)
        self.meetings += 1
        while store.add("mmgen", 0) < self.meetings:  # raises if the first process has ended
            time.sleep(0.05)  # Python handles signals
        super().wait_for_everyone()


def start() -> Processes:
    """Connect the processes, and choose the device of this one. They disconnect when Python ends. Raises RunError if
    they cannot connect."""
    os.environ.setdefault("TORCH_NCCL_BLOCKING_WAIT", "1")  # a sum raises when time is up, and does not end the process
    try:
        expected = int(os.environ.get("WORLD_SIZE", 1))
        on_cpus = expected > 1 and not torch.cuda.is_available()  # without cpu=True each process would run alone
        processes = Processes(cpu=on_cpus, timeout=PATIENCE)
    except (RuntimeError, ValueError) as error:
        raise RunError(f"the processes could not connect: {str(error).strip().splitlines()[0]}; {HOW}") from None
    if processes.num_processes != expected:
        raise RunError(f"WORLD_SIZE is {expected} in the environment, but LOCAL_RANK is not set; {HOW}")
    if not processes.is_main_process:
        logging.disable(logging.INFO)  # messages appear once
    if expected > 1:
        # an open group may abort its process at exit, and `torchrun` then reports a failed run
        atexit.register(_leave)
    return processes


def _leave() -> None:
    if distributed.is_initialized():
        distributed.destroy_process_group()


def all_reduce_sum(processes: PartialState, tensors: Sequence[Tensor]) -> None:
    """Replace every tensor by its sum over all processes, with the same bits in every process."""
    _send(processes, tensors, partial(distributed.all_reduce, async_op=True))


def broadcast(processes: PartialState, tensors: Sequence[Tensor]) -> None:
    """Replace every tensor by that of the first process."""
    _send(processes, tensors, partial(distributed.broadcast, src=0, async_op=True))


@torch.no_grad()
def _send(processes: PartialState, tensors: Sequence[Tensor], send: Callable[[Tensor], Any]) -> None:
    """Send all tensors, and only then wait."""
    for work in [send(tensor) for tensor in tensors] if processes.num_processes > 1 else ():
        work.wait()


def any_rank(processes: PartialState, flags: Sequence[bool]) -> list[bool]:
    """For every flag, whether it is true in any process."""
    if processes.num_processes == 1:
        return list(flags)
    raised = torch.tensor(flags, dtype=torch.int32, device=processes.device)
    all_reduce_sum(processes, [raised])
    return [count > 0 for count in raised.tolist()]


@contextlib.contextmanager
def peer_failures(processes: PartialState, place: str = "") -> Iterator[None]:
    """Raises RunError instead of a network error if this process waits for a process that has ended, or does not answer
    within `PATIENCE`. `place`: begins the message."""
    try:
        yield
    except RuntimeError as error:  # torch's network errors are, and gloo's are nothing more
        if processes.num_processes == 1 or not (isinstance(error, distributed.DistError) or LOST.search(str(error))):
            raise
        raise RunError(
            f"{place}process {processes.process_index} of {processes.num_processes}: another process has ended or does "
            f"not answer ({str(error).strip().splitlines()[0]}); its last message is above, or in its output; the same "
            "command resumes from the last checkpoint"
        ) from None
