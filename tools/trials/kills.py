"""The trial of kills: writers, runs, steps side by side and the service are killed at any moment, and started again.

Afterwards there must be the same files with the same bytes as without a kill, and no file, process, lock or port may be
left over. A case is work of one surface, killed once or more often, and then done to its end."""

from __future__ import annotations

import gc
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

import torch

from . import runs, service, writers
from .piece import Case, Outcome

TRIES, COUNT = "kills", 1000
KEEPS = False
SHARES = {  # of the cases; the sum does not matter
    "checkpoint": 6,
    "checkpoint of 300 MB": 3,
    "export": 6,
    "export over an export": 6,
    "data set export": 4,
    "feature store": 5,
    "feature store that grows": 4,
    "shard of features": 5,
    "shard of answers": 5,
    "merged answers": 5,
    "merged stores": 5,
    "index of stores": 4,
    "run": 3,
    "run, steps side by side": 6,
    "child, steps side by side": 5,
    "service, SIGKILL": 5,
    "service, SIGTERM": 5,
}


class Surface(Protocol):
    """What is killed."""

    def case(self, draw: random.Random) -> Outcome:
        """Kill it once or more often, start it again, and compare."""


def cycle() -> list[str]:
    return order(SHARES)


@contextmanager
def opened(seed: int, folder: Path) -> Iterator[Case]:
    """Cases take the surfaces in turn. A surface is prepared when its first case comes."""
    torch.set_num_threads(1)
    makers, turns = surfaces(folder / "materials"), cycle()
    ready: dict[str, Surface] = {}

    def case(number: int) -> Outcome:
        name = turns[number % len(turns)]
        if name not in ready:
            ready[name] = makers[name](folder / str(len(ready)))
            gc.freeze()  # forks need not look through what is here already
        return ready[name].case(random.Random(f"{seed}/{number}"))

    try:
        yield case
    finally:
        gc.unfreeze()  # else libraries report leaks when Python ends


def surfaces(folder: Path) -> dict[str, Callable[[Path], Surface]]:
    """How surfaces are prepared, by name; each gets a folder. `folder`: for what they share."""
    materials = writers.Materials(folder)
    writing = {writer.name: partial(writers.Writing, writer) for writer in writers.writers(materials)}

    def serving(how: signal.Signals, place: Path) -> Surface:
        return service.Serving(materials.predictor, how, place)

    return writing | {
        "run": partial(runs.whole_runs, "run"),
        "run, steps side by side": partial(runs.side_by_side_runs, "run, steps side by side", runs.kill_parent, False),
        "child, steps side by side": partial(
            runs.side_by_side_runs, "child, steps side by side", runs.kill_child, True
        ),
        "service, SIGKILL": partial(serving, signal.SIGKILL),
        "service, SIGTERM": partial(serving, signal.SIGTERM),
    }


def order(shares: dict[str, int]) -> list[str]:
    """The surfaces of the cases of a turn, spread over it by their shares."""
    places = [((number + 0.5) / share, name) for name, share in shares.items() for number in range(share)]
    return [name for _, name in sorted(places)]
