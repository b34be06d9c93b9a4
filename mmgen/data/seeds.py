"""Random draws, each a function of a seed and a place: generators, torch's seeds, one of each input's alternatives."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from ..tensors import Example, ResolvedExample


@dataclass(frozen=True)
class RngKey:
    """The seed and the step that random draws depend on. Draws never depend on a batch, so any batch may be cut."""

    seed: int = 0
    step: str = ""

    def draw(self, example: Example, epoch: object, *more: str) -> random.Random:
        """A generator for an example in one epoch (None: outside training)."""
        return self.generator(example.id, epoch, *more)

    def generator(self, id_: str, epoch: object, *more: str) -> random.Random:
        """A generator for the example with this id."""
        epoch_name = "still" if epoch is None else epoch
        return random.Random("/".join(map(str, (self.seed, self.step, epoch_name, id_, *more))))

    def resolve(self, example: Example, epoch: object) -> ResolvedExample:
        """The example with one of each input's alternatives: drawn in training, else the first."""
        has_alternatives = epoch is not None and any(isinstance(value, tuple) for value in example.inputs.values())
        return resolve(example, self.draw(example, epoch) if has_alternatives else None)


def share_a_picture(first: Example, second: Example) -> bool:
    """Whether two examples have the same id or share the value of an input with one value (a key)."""
    fields = [name for name, value in first.inputs.items() if not isinstance(value, tuple)]
    return first.id == second.id or any(value in second.shown(name) for name in fields for value in first.shown(name))


def resolve(example: Example, draw: random.Random | None = None) -> ResolvedExample:
    """The example with one of each input's alternatives: drawn with `draw`, else the first. An input without
    alternatives is left out."""
    if isinstance(example, ResolvedExample):
        return example
    inputs = {}
    for name, value in example.inputs.items():
        if isinstance(value, tuple):
            if not value:
                continue
            value = draw.choice(value) if draw else value[0]
        inputs[name] = value
    return ResolvedExample(example.id, inputs, example.targets, example.facts, example.labels)


def seed_from(*place: object) -> int:
    """A seed for torch from a place: (seed, step, update, ...)."""
    return int.from_bytes(hashlib.sha256("/".join(map(str, place)).encode()).digest()[:7], "big")


def draw_from(device: torch.device, *place: object) -> None:
    """Seeds torch on `device` from a place. The numbers are those after `torch.manual_seed`, which would spend half a
    millisecond to seed GPUs that the process does not use."""
    seed = seed_from(*place)
    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


@contextmanager
def seeded(*place: object) -> Iterator[None]:
    """Seeds torch from a place inside the context and restores the former state afterwards. Of several GPUs only the
    current one is restored, and none if CUDA is not in use."""
    in_use = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(in_use):
        torch.manual_seed(seed_from(*place))
        yield
