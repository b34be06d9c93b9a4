"""Random draws, each a function of a seed and a place: hashes, generators, torch's seeds, one of an input's
alternatives."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
import torch

from ..examples import Example, ResolvedExample

Numbers = TypeVar("Numbers", int, np.ndarray)


@dataclass(frozen=True)
class RngKey:
    """The seed and the step that random draws depend on. Draws never depend on a batch, so any batch may be cut."""

    seed: int = 0
    step: str = ""

    def draw(self, example: Example, epoch: object, *more: str) -> random.Random:
        """A generator for an example in one epoch (None: outside training)."""
        epoch_name = "still" if epoch is None else epoch
        return random.Random("/".join(map(str, (self.seed, self.step, epoch_name, example.id, *more))))

    def scramble(self, numbers: Numbers, *place: object) -> Numbers:
        """(n) uint64: a random number for each of these 64-bit numbers at a place, or for a single one (SplitMix64)."""
        mixed = numbers ^ seed_from(self.seed, self.step, *place)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed ^= mixed >> shift
            mixed *= factor
            mixed &= 0xFFFFFFFFFFFFFFFF
        mixed ^= mixed >> 31
        return mixed

    def choose(self, ids: Numbers, counts: Numbers, epoch: object, field: str) -> Numbers:
        """Which of its `counts` alternatives of an input every example shows in an epoch. `ids`: of `hash_id`."""
        return self.scramble(ids, epoch, field) % counts

    def resolve(self, example: Example, epoch: object) -> ResolvedExample:
        """The example with one of each input's alternatives: drawn in training, else the first."""
        if epoch is None:
            return resolve(example)
        id_ = hash_id(example.id)
        return resolve(example, lambda field, count: count > 1 and self.choose(id_, count, epoch, field))


def hash_id(id_: str) -> int:
    """64 bits, equal for equal ids in every process."""
    digest = hashlib.blake2b(id_.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def share_a_picture(first: Example, second: Example) -> bool:
    """Whether two examples have the same id or share the value of an input with one value (a key)."""
    fields = [name for name, value in first.inputs.items() if not isinstance(value, tuple)]
    return first.id == second.id or any(value in second.shown(name) for name in fields for value in first.shown(name))


def resolve(example: Example, choose: Callable[[str, int], int] | None = None) -> ResolvedExample:
    """The example with one of each input's alternatives: the first, or the one that `choose(field, count)` numbers. An
    input without alternatives is left out."""
    if isinstance(example, ResolvedExample):
        return example
    inputs = {}
    for name, value in example.inputs.items():
        if isinstance(value, tuple):
            if not value:
                continue
            value = value[choose(name, len(value)) if choose else 0]
        inputs[name] = value
    return ResolvedExample(example.id, inputs, example.targets, example.facts, example.labels)


@lru_cache(64, typed=True)
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
        draw_from(torch.device("cuda" if in_use else "cpu"), *place)
        yield
