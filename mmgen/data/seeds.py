"""Seeds and draws: every random choice is a function of a seed and a place."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from ..tensors import Example, ResolvedExample


@dataclass(frozen=True)
class Place:
    """What the random draws of a step follow from. They never depend on a batch, so that a batch may be cut at will."""

    seed: int = 0
    step: str = ""

    def draw(self, example: Example, which: object, *more: str) -> random.Random:
        """A generator for an example in one pass over the data (None: wherever it is looked at without learning)."""
        passed = "still" if which is None else which
        return random.Random("/".join(map(str, (self.seed, self.step, passed, example.id, *more))))

    def resolve(self, example: Example, which: object) -> ResolvedExample:
        """The example with one of each input's alternatives: drawn while learning, else the first."""
        several = which is not None and any(isinstance(value, tuple) for value in example.inputs.values())
        return resolve(example, self.draw(example, which) if several else None)


def share_a_picture(one: Example, other: Example) -> bool:
    """Whether two examples are the same, or have an input of one value (a key) in common."""
    fields = [name for name, value in one.inputs.items() if not isinstance(value, tuple)]
    return one.id == other.id or any(value in other.shown(name) for name in fields for value in one.shown(name))


def resolve(example: Example, draw: random.Random | None = None) -> ResolvedExample:
    """The example with one of each input's alternatives: drawn where `draw` is given, else the first. An input without
    any alternative is left out."""
    if isinstance(example, ResolvedExample):
        return example
    chosen = {}
    for name, value in example.inputs.items():
        if isinstance(value, tuple):
            if not value:
                continue
            value = draw.choice(value) if draw else value[0]
        chosen[name] = value
    return ResolvedExample(example.id, chosen, example.targets, example.facts, example.labels)


def seed_from(*place: object) -> int:
    """A seed for torch from where we are."""
    return int.from_bytes(hashlib.sha256("/".join(map(str, place)).encode()).digest()[:7], "big")


def draw_from(device: torch.device, *place: object) -> None:
    """From here on torch draws from where we are, on `device`: the numbers that follow `torch.manual_seed`, which takes
    half a millisecond to note a seed for GPUs that a process does not use."""
    seed = seed_from(*place)
    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


@contextmanager
def seeded(*place: object) -> Iterator[None]:
    """Within, torch draws from where we are; afterwards it goes on as if nothing had been drawn. Of several GPUs only
    the one in use is looked at, and none where none is in use."""
    in_use = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(in_use):
        torch.manual_seed(seed_from(*place))
        yield
