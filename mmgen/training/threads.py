"""The number of CPU threads of a run: as requested, else suited to the model's size.

A small model finishes an operation before a second thread has started. Waiting threads must sleep: OpenMP lets them
spin, and next to another process the working thread then waits for a spinning one.
"""

from __future__ import annotations

import os

import torch
from torch import nn

AUTO = "auto"  # chosen by mmgen; None keeps torch's setting
ASKED = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # environment variables that set the number
SMALL = 5_000_000  # parameters. With 0.5 M, two threads are 1.1 times as fast as one; the limit is a guess


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_workers(device: torch.device, processes: int) -> int:
    """How many loader workers a process has by default, one of several on this machine. A GPU would wait for batches;
    on a CPU, workers would take cores from training."""
    return max(0, min(4, cores() // processes - 1)) if device.type == "cuda" else 0


def use_threads(threads: int | str | None) -> None:
    """Set a requested number at the start, so that it also applies to feature extraction."""
    if isinstance(threads, int):
        torch.set_num_threads(threads)


def choose_threads(threads: int | str | None, model: nn.Module, jobs: int = 1) -> str:
    """Set torch's number of threads, and return a message about it. `threads`: a number, `AUTO` or None. `jobs`: the
    number of processes that share the cores; without a requested number each gets its share."""
    use_threads(threads)
    if threads == AUTO and not any(os.environ.get(name) for name in ASKED):
        small = sum(parameter.numel() for parameter in model.parameters()) <= SMALL
        torch.set_num_threads(1 if small else max(1, torch.get_num_threads() // jobs))
    count, side_by_side = torch.get_num_threads(), f", up to {jobs} steps side by side, each" * (jobs > 1)
    return f"computing{side_by_side} with {count} thread{'s' * (count > 1)}; --threads sets another number"
