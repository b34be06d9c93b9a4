"""Random draws, each a function of a seed and a place: hashes, generators, torch's seeds, one of an input's
alternatives."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from ..examples import Example, ResolvedExample


@dataclass(frozen=True)
class RngKey:
    """The seed and the step that random draws depend on. Draws never depend on a batch, so any batch may be cut."""

    seed: int = 0
    step: str = ""

    def draw(self, example: Example, epoch: object, *more: str) -> random.Random:
        """A generator for an example in one epoch (None: outside training)."""
        epoch_name = "still" if epoch is None else epoch
        return random.Random("/".join(map(str, (self.seed, self.step, epoch_name, example.id, *more))))

    def choose(self, ids: np.ndarray, counts: np.ndarray | int, epoch: object, field: str) -> np.ndarray:
        """(n) which of its `counts` alternatives of an input every example shows in an epoch. `ids`: of `hash_ids`."""
        return (scramble(ids, self.seed, self.step, epoch, field) % np.asarray(counts, np.uint64)).astype(np.int64)

    def resolve(self, example: Example, epoch: object) -> ResolvedExample:
        """The example with one of each input's alternatives: drawn in training, else the first."""
        return resolve(example, None if epoch is None else partial(self._choose_one, example.id, epoch))

    def _choose_one(self, id_: str, epoch: object, field: str, count: int) -> int:
        return int(self.choose(hash_ids([id_]), count, epoch, field)[0]) if count > 1 else 0


def hash_ids(ids: Iterable[str]) -> np.ndarray:
    """(n) uint64, equal for equal ids in every process."""
    digests = [hashlib.blake2b(id_.encode("utf-8", "surrogatepass"), digest_size=8).digest() for id_ in ids]
    return np.frombuffer(b"".join(digests), np.uint64)


def scramble(numbers: np.ndarray, *place: object) -> np.ndarray:
    """(n) uint64: a random number for each of these numbers at a place (SplitMix64)."""
    mixed = numbers ^ np.uint64(seed_from(*place))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


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
