"""Plan: what every optimiser update of a step learns from, a function of (seed, step, epoch)."""

from __future__ import annotations

import bisect
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import DataError
from ..tensors import Example
from .collate import Collator
from .seeds import Place

SLACK = 1.25  # a micro-batch may have so many times the slots that its pairs have on average


@dataclass(frozen=True)
class Visit:
    """One example in one epoch."""

    index: int
    epoch: int


@dataclass(frozen=True)
class PlanOptions:
    """What a plan follows from, beside the examples. `batch_size` and `micro_batch` count pairs."""

    seed: int
    step: str
    epochs: int
    batch_size: int
    micro_batch: int
    bucket: int = 1  # updates that share their examples out by length


@dataclass(frozen=True)
class Plan:
    """What every optimiser update of a step learns from: `updates[u]` lists micro-batches, each a list of visits.

    Examples come in an order drawn for each epoch, and an update has `batch_size` pairs (one input and one target) or
    a few more. `bucket` updates at a time share their examples out by length, the short rows to one, the long ones to
    another, and then come in an order that is drawn too. Micro-batches do not depend on the number of processes, so
    that any number computes the same."""

    seed: int
    step: str
    updates: tuple[tuple[tuple[Visit, ...], ...], ...]
    epochs: tuple[
        int, ...
    ]  # updates done when each epoch ends; epochs differ where examples have unlike numbers of targets

    @classmethod
    def make(cls, examples: Sequence[Example], options: PlanOptions, lengths: Collator | None = None) -> Plan:
        """Examples of like length share a micro-batch, for less padding. A micro-batch of long examples holds fewer, so
        that it has no more slots than usual. `lengths` says how long rows are; by default all are alike."""
        seed, step, batch_size, micro_batch = options.seed, options.step, options.batch_size, options.micro_batch
        place = Place(seed, step)
        if not examples:
            raise DataError("there is nothing to learn from: the split has no examples")
        pairs = [lengths.pairs(example) if lengths else len(example.targets) for example in examples]
        measure = lengths if options.bucket > 1 or micro_batch < batch_size else None
        tails = measure.tails(examples) if measure else [1] * len(examples)
        updates, ends = [], []
        for epoch in range(options.epochs):
            order = list(range(len(examples)))
            draw = random.Random(f"{seed}/{step}/order/{epoch}")
            draw.shuffle(order)
            slots = (
                [
                    measure.prefix(place.resolve(example, epoch)) + tail
                    for example, tail in zip(examples, tails, strict=True)
                ]
                if measure
                else tails
            )
            budget = SLACK * micro_batch * sum(slots) / max(1, sum(pairs)) if micro_batch < batch_size else math.inf
            for chunk in _bucketed(order, pairs, slots, batch_size, options.bucket, draw):
                chunk.sort(key=lambda index: (slots[index], index))
                updates.append(
                    tuple(
                        tuple(Visit(i, epoch) for i in micro)
                        for micro in _within(chunk, pairs, micro_batch, slots, budget)
                    )
                )
            ends.append(len(updates))
        return cls(seed, step, tuple(updates), tuple(ends))

    def __len__(self) -> int:
        return len(self.updates)

    def epoch(self, update: int) -> float:
        """Epochs passed when an update begins."""
        whole = bisect.bisect_right(self.epochs, update)
        first = self.epochs[whole - 1] if whole else 0
        return whole + (update - first) / (self.epochs[whole] - first)

    @property
    def place(self) -> Place:
        return Place(self.seed, self.step)


def _until(order: Sequence[int], pairs: Sequence[int], limit: int) -> list[list[int]]:
    """`order` cut into runs that end once their pairs reach the limit."""
    runs, run, count = [], [], 0
    for index in order:
        run.append(index)
        count += pairs[index]
        if count >= limit:
            runs.append(run)
            run, count = [], 0
    return runs + ([run] if run else [])


def _bucketed(
    order: Sequence[int],
    pairs: Sequence[int],
    slots: Sequence[float],
    batch_size: int,
    bucket: int,
    draw: random.Random,
) -> list[list[int]]:
    """`order` cut into updates. Groups of `bucket` updates (at most a quarter of all, so that epochs differ)
    redistribute their examples by length; rows of one length stay as drawn. What is left over goes to the next
    group."""
    runs = _until(order, pairs, batch_size)
    bucket = min(bucket, len(runs) // 4)
    if bucket < 2:
        return runs
    shared, pool = [], []
    for first in range(0, len(runs), bucket):
        pool += [index for run in runs[first : first + bucket] for index in run]
        cut = _until(sorted(pool, key=lambda index: slots[index]), pairs, batch_size)
        more = first + bucket < len(runs) and sum(pairs[index] for index in cut[-1]) < batch_size
        pool = cut.pop() if more else []
        shared += cut
    draw.shuffle(shared)
    return shared


def _within(
    chunk: Sequence[int], pairs: Sequence[int], most: int, slots: Sequence[float], budget: float
) -> list[list[int]]:
    """`chunk` cut into runs that end once their pairs reach `most`, or before their slots pass the budget."""
    runs: list[list[int]] = []
    room, left = 0.0, 0
    for index in chunk:
        if left <= 0 or slots[index] > room:
            runs.append([])
            room, left = budget, most
        runs[-1].append(index)
        room, left = room - slots[index], left - pairs[index]
    return runs
