"""Plan: what every optimiser update of a step learns from, a function of (seed, step, epoch)."""

from __future__ import annotations

import bisect
import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ..errors import DataError
from ..tensors import Batch, Example
from .collate import Collator
from .seeds import Place
from .sources import Source

Visited = Sequence[tuple[Example, int]]  # examples, each with the number of the pass over its source
KEPT = 100_000  # lengths of rows that are remembered, of one pass at least
SLACK = 1.25  # a micro-batch may have so many times the slots that its pairs have on average


@dataclass(frozen=True)
class Visit:
    """One example of a source in one pass over it."""

    index: int
    epoch: int  # which pass
    source: int = 0


@dataclass(frozen=True)
class Pool:
    """A source, and how its examples become batches."""

    source: Source
    collate: Collator

    @property
    def examples(self) -> Sequence[Example]:
        return self.source.examples

    def parted(self, visited: tuple[Example, int]) -> list[tuple[Example, int]]:
        """A single example cut in two; one that cannot be cut comes back alone."""
        return [(half, visited[1]) for half in self.collate.halves(visited[0])]

    def batch(self, visited: Visited) -> Batch:
        """Examples, each with its pass over the source, as a batch."""
        return self.collate([example for example, _ in visited], [which for _, which in visited])


@dataclass(frozen=True)
class PlanOptions:
    """What a plan follows from, beside the examples. `batch_size` and `micro_batch_size` count pairs."""

    seed: int
    step: str
    epochs: int
    batch_size: int
    micro_batch_size: int
    length_bucket: int = 1  # updates that share their examples out by length


@dataclass(frozen=True)
class Plan:
    """What every optimiser update of a step learns from: `updates[u]` lists micro-batches, each a list of visits to one
    source.

    Examples come in an order drawn for each epoch, and an update has `batch_size` pairs (one input and one question) or
    a few more. `length_bucket` updates at a time share their examples out by length, the short rows to one, the long
    ones to another, and then come in an order that is drawn too. Micro-batches do not depend on the number of
    processes, so that any number computes the same.

    Of several sources an epoch is one pass over the first. In every update the pairs of the others stand to its pairs
    as their shares do, as near as whole examples come; each goes round, from one pass into the next."""

    seed: int
    step: str
    updates: tuple[tuple[tuple[Visit, ...], ...], ...]
    epochs: tuple[
        int, ...
    ]  # updates done when each epoch ends; epochs differ where examples have unlike numbers of questions

    @classmethod
    def make(cls, pools: Sequence[Pool], options: PlanOptions) -> Plan:
        """Examples of like length share a micro-batch, for less padding. A micro-batch of long examples holds fewer, so
        that it has no more slots than usual."""
        together = sum(pool.source.share for pool in pools)
        first, *others = [
            _Visits(pool, number, options, options.batch_size * pool.source.share / together)
            for number, pool in enumerate(pools)
        ]
        updates, pairs, ends = [], [], []
        for epoch in range(options.epochs):
            for run in _bucketed(first, epoch, options.length_bucket):
                updates.append(first.micros(run))
                pairs.append(first.pairs(run))
            ends.append(len(updates))
        for other in others:
            wants = [count * other.limit / first.limit for count in pairs]
            for update, run in enumerate(_beside(other, wants, options.length_bucket)):
                updates[update] += other.micros(run)
        return cls(options.seed, options.step, tuple(updates), tuple(ends))

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


class _Visits:
    """The visits to one source: in which order, and how many pairs and slots each has.

    limit  pairs of it in an update
    """

    def __init__(self, pool: Pool, number: int, options: PlanOptions, limit: float) -> None:
        if not pool.examples:
            raise DataError("there is nothing to learn from: the split has no examples")
        self.examples, self.number, self.options, self.limit = pool.examples, number, options, limit
        self.measure = pool.collate if options.length_bucket > 1 or options.micro_batch_size < limit else None
        self._pairs = [pool.collate.pairs(example) for example in pool.examples]
        self._slots = lru_cache(max(2, KEPT // len(pool.examples)))(self._slots_of)

    def draw(self, what: str, which: int) -> random.Random:
        """The random numbers for something about this source."""
        own = [self.number] if self.number else []
        return random.Random("/".join(map(str, (self.options.seed, self.options.step, what, which, *own))))

    def order(self, which: int, draw: random.Random) -> list[Visit]:
        """One pass."""
        order = list(range(len(self.examples)))
        draw.shuffle(order)
        return [Visit(index, which, self.number) for index in order]

    def endless(self) -> Iterator[Visit]:
        """Pass after pass."""
        if not any(self._pairs):
            raise DataError("there is nothing to learn from: the examples have no pair of an input and a question")
        for which in itertools.count():
            yield from self.order(which, self.draw("order", which))

    def pairs(self, visits: Sequence[Visit]) -> int:
        return sum(self._pairs[visit.index] for visit in visits)

    def slots(self, visit: Visit) -> float:
        return self._slots(visit.epoch)[visit.index]

    @cached_property
    def _tails(self) -> Sequence[float]:
        return self.measure.tails(self.examples) if self.measure else [1.0] * len(self.examples)

    def _slots_of(self, which: int) -> list[float]:
        """Of every example in one pass, for which one of an input's alternatives is drawn."""
        if not self.measure:
            return [*self._tails]
        place = Place(self.options.seed, self.options.step)
        resolved = (place.resolve(example, which) for example in self.examples)
        return [self.measure.prefix(each) + tail for each, tail in zip(resolved, self._tails, strict=True)]

    def micros(self, run: Sequence[Visit]) -> tuple[tuple[Visit, ...], ...]:
        """An update's visits cut into micro-batches: each ends once its pairs reach `micro_batch_size`, or before its
        slots pass a budget."""
        budget, most = math.inf, self.options.micro_batch_size
        if run and most < self.limit:
            budget = SLACK * most * sum(self._slots(run[0].epoch)) / max(1, sum(self._pairs))
        found: list[list[Visit]] = []
        room, left = 0.0, 0
        for visit in sorted(run, key=lambda visit: (self.slots(visit), visit.epoch, visit.index)):
            if left <= 0 or self.slots(visit) > room:
                found.append([])
                room, left = budget, most
            found[-1].append(visit)
            room, left = room - self.slots(visit), left - self._pairs[visit.index]
        return tuple(map(tuple, found))


def _until(order: Sequence[Visit], visits: _Visits) -> list[list[Visit]]:
    """`order` cut into runs that end once their pairs reach the limit."""
    runs: list[list[Visit]] = []
    run: list[Visit] = []
    count = 0
    for visit in order:
        run.append(visit)
        count += visits.pairs([visit])
        if count >= visits.limit:
            runs.append(run)
            run, count = [], 0
    return runs + ([run] if run else [])


def _bucketed(visits: _Visits, epoch: int, length_bucket: int) -> list[list[Visit]]:
    """An epoch cut into updates. Groups of `length_bucket` updates (at most a quarter of all, so that epochs differ)
    redistribute their examples by length; rows of one length stay as drawn. What is left over goes to the next
    group."""
    draw = visits.draw("order", epoch)
    runs = _until(visits.order(epoch, draw), visits)
    length_bucket = min(length_bucket, len(runs) // 4)
    if length_bucket < 2:
        return runs
    shared: list[list[Visit]] = []
    pool: list[Visit] = []
    for first in range(0, len(runs), length_bucket):
        pool += [visit for run in runs[first : first + length_bucket] for visit in run]
        cut = _until(sorted(pool, key=visits.slots), visits)
        more = first + length_bucket < len(runs) and visits.pairs(cut[-1]) < visits.limit
        pool = cut.pop() if more else []
        shared += cut
    draw.shuffle(shared)
    return shared


def _beside(visits: _Visits, wants: Sequence[float], length_bucket: int) -> list[list[Visit]]:
    """What a source that goes round gives to every update, which wants so many pairs. Groups of `length_bucket` updates
    redistribute it by length."""
    runs = _dealt(visits.endless(), visits, wants)
    length_bucket = min(length_bucket, len(runs) // 4)
    for first in range(0, len(runs), length_bucket) if length_bucket > 1 else ():
        places = [*range(first, min(first + length_bucket, len(runs)))]
        pool = iter(sorted((visit for place in places for visit in runs[place]), key=visits.slots))
        visits.draw("shared", first).shuffle(places)
        cut = _dealt(pool, visits, [wants[place] for place in places])
        cut[-1] += pool  # what is left over
        for place, run in zip(places, cut, strict=True):
            runs[place] = run
    return runs


def _dealt(order: Iterator[Visit], visits: _Visits, wants: Sequence[float]) -> list[list[Visit]]:
    """`order` cut into as many runs as there are `wants`. Each ends once the pairs of all so far reach what is wanted
    so far."""
    runs: list[list[Visit]] = []
    due, taken = 0.0, 0
    for want in wants:
        due += want
        runs.append([])
        while taken < due - 1e-6 and (visit := next(order, None)) is not None:
            runs[-1].append(visit)
            taken += visits.pairs([visit])
    return runs
