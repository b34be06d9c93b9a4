"""The context of a step: folder, processes, progress, precision; a run's events, and the callbacks that get them."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..configs import CallbackConfig
from ..errors import blame
from ..parts import Callback
from ..progress import Progress
from ..recipe.tables import Step
from .distributed import Processes

Events = Callable[..., None]  # called for every event of a run: a method of `parts.Callback` and its arguments


def ignore(*event: Any) -> None:
    """Events of a run without callbacks."""


@dataclass(frozen=True)
class StepContext:
    """One step of a run, as one process sees it.

    name         the step's name in the recipe
    step         its settings
    seed         the run's seed
    folder       the folder of its files
    accelerator  the processes that work on it, and this one's device
    progress     messages for people; silent in all processes but the first
    events       gets those of the run, in the first process
    """

    name: str
    step: Step
    seed: int
    folder: Path
    accelerator: Processes
    progress: Progress
    events: Events = ignore


def precision(name: str, device: torch.device) -> contextlib.AbstractContextManager:
    """Mixed precision of a step. (accelerate sets one for a process; here steps may differ.)"""
    bf16 = name == "bf16" or name == "auto" and device.type == "cuda" and torch.cuda.is_bf16_supported()
    return torch.autocast(device.type, torch.bfloat16) if bf16 else contextlib.nullcontext()


class Callbacks:
    """Calls the callbacks of a run in turn, with copies of records. One that raises is left out, as `say` reports."""

    def __init__(self, configs: Mapping[str, CallbackConfig], say: Callable[[str], None]) -> None:
        self._configs, self._say = configs, say
        self._callbacks: dict[str, Callback] = {}

    def __enter__(self) -> Callbacks:
        for name, config in self._configs.items():
            with self._left_out(name):
                self._callbacks[name] = config.build()
        return self

    def __call__(self, method: str, *arguments: Any) -> None:
        """Report an event."""
        for name, callback in list(self._callbacks.items()):
            copies = [copy.deepcopy(value) if isinstance(value, dict) else value for value in arguments]
            with self._left_out(name):
                getattr(callback, method)(*copies)

    def __exit__(self, *error: object) -> None:
        self("close")

    @contextlib.contextmanager
    def _left_out(self, name: str) -> Iterator[None]:
        """Leave the callback out if it raises."""
        try:
            yield
        except (Exception, SystemExit) as error:  # sys.exit in a plugin
            self._callbacks.pop(name, None)
            problem = blame(error) or f"{type(error).__name__}: {error}"
            self._say(f"callbacks.{name}: {problem}; the run continues without this callback")
