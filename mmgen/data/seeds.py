"""Seeds and draws: every random choice is a function of a seed and a place."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch

from ..tensors import Example


def resolve(example: Example, draw: random.Random | None = None) -> Example:
    """The example with one of each input's alternatives: drawn where `draw` is given, else the first."""
    chosen = {}
    for name, value in example.inputs.items():
        if isinstance(value, tuple):
            if not value:
                continue
            value = draw.choice(value) if draw else value[0]
        chosen[name] = value
    return replace(example, inputs=chosen)


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
