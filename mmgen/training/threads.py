"""How many threads of the processor a run computes with: those that people ask for, else what suits the model's size.

A small model is done with an operation before a second thread has woken up, and the core does more good elsewhere.
Threads that wait must sleep: OpenMP lets them spin, and beside another process the one that works then waits for one
that spins.
"""

from __future__ import annotations

import os

import torch
from torch import nn

AUTO = "auto"  # choose; None leaves torch's own setting as it is
ASKED = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # whoever sets one of them has chosen
SMALL = 5_000_000  # weights. With half a million, two threads learn 1.1 times as fast as one; the limit is a guess


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def use_threads(wanted: int | str | None) -> None:
    """A number that people ask for holds from the start, for features too."""
    if isinstance(wanted, int):
        torch.set_num_threads(wanted)


def choose_threads(wanted: int | str | None, model: nn.Module, jobs: int = 1) -> str:
    """Sets torch's number of threads, and says it in a line. `wanted`: a number, `AUTO` or None. `jobs`: how many
    processes share the cores; where nobody has chosen, each gets its part."""
    asked = next((name for name in ASKED if os.environ.get(name)), None)
    if isinstance(wanted, int):
        use_threads(wanted)
        why = "as --threads says"
    elif wanted is None:
        why = "torch's own setting"
    elif asked:
        why = f"as {asked} says"
    elif (weights := sum(parameter.numel() for parameter in model.parameters())) <= SMALL:
        torch.set_num_threads(1)
        why = f"more are of no use to {weights / 1e6:.1f} million weights; --threads sets another number"
    else:
        if jobs > 1:
            torch.set_num_threads(max(1, torch.get_num_threads() // jobs))
        why = "--threads sets another number"
    count = torch.get_num_threads()
    side_by_side = f", up to {jobs} steps side by side, each" if jobs > 1 else ""
    return (
        f"computing{side_by_side} with {count} thread{'s' * (count > 1)} on {cores()} core{'s' * (cores() > 1)} ({why})"
    )
