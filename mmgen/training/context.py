"""Context: the step that runs, with its folder, processes and progress."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

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
