"""Context: the step that runs, with its folder, processes and progress; its precision."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path

import torch

from ..progress import Progress
from ..recipe.tables import Step
from .callbacks import Events
from .distributed import Processes


@dataclass(frozen=True)
class StepContext:
    """One step of a run, as one process sees it.

    name         the step's name in the recipe
    step         its settings
    seed         the run's seed
    folder       the folder of its files
    accelerator  the processes that work on it, and this one's device
    progress     messages for people; silent in all processes but the first
    events       what callbacks are told, in the first process
    """

    name: str
    step: Step
    seed: int
    folder: Path
    accelerator: Processes
    progress: Progress
    events: Events = field(default_factory=Events)


def precision(name: str, device: torch.device) -> contextlib.AbstractContextManager:
    """Mixed precision of a step. (accelerate sets one for a process; here steps may differ.)"""
    bf16 = name == "bf16" or name == "auto" and device.type == "cuda" and torch.cuda.is_bf16_supported()
    return torch.autocast(device.type, torch.bfloat16) if bf16 else contextlib.nullcontext()
