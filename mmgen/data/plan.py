"""Plan: the examples of every optimiser update of a step, a function of (seed, step, epoch)."""

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
from .seeds import RngKey
from .sources import Source

ExampleEpochs = Sequence[tuple[Example, int]]  # examples, each with the epoch of its source
CACHED_LENGTHS = 100_000  # row lengths in memory; at least those of one epoch
SLACK = 1.25  # slots of a micro-batch, at most, relative to the average for its pairs


@dataclass(frozen=True)
class Sample:
    """One example of a source in one epoch of that source."""

    index: int
    epoch: int
    source: int = 0


@dataclass(frozen=True)
class DataStream:
    """A source and the collator of its examples."""

    source: Source
    collate: Collator

    @property
    def examples(self) -> Sequence[Example]:
        return self.source.examples

    def cut_in_two(self, example_epoch: tuple[Example, int]) -> list[tuple[Example, int]]:
        """A single example cut in two, or as one if the example cannot be cut."""
        return [(half, example_epoch[1]) for half in self.collate.halves(example_epoch[0])]

    def batch(self, examples: ExampleEpochs) -> Batch:
        """A batch of examples, each with the epoch of its source."""
        return self.collate([example for example, _ in examples], [epoch for _, epoch in examples])


@dataclass(frozen=True)
class PlanOptions:
    """The settings of a plan. `batch_size` and `micro_batch_size` count pairs."""

    seed: int
    step: str
    epochs: int
    batch_size: int
    micro_batch_size: int
    length_bucket: int = 1  # updates that redistribute their examples by length


@dataclass(frozen=True)
class Plan:
    """The examples of every optimiser update of a step: `updates[u]` lists micro-batches, each a list of visits to one
    source.

    Every epoch draws the order of the examples, and an update has `batch_size` pairs (one input and one question) or a
    few more. `length_bucket` updates at a time redistribute their examples by length, short rows to one update and long
    rows to another, and then these updates are shuffled. Micro-batches do not depend on the number of processes, so
    that any number of processes computes the same.

    With several sources, an epoch is one epoch of the first source. In every update the pairs of the sources are in
    proportion to their shares, as closely as whole examples allow; the other sources repeat without end."""

    seed: int
    step: str
    updates: tuple[tuple[tuple[Sample, ...], ...], ...]
    epochs: tuple[int, ...]  # updates done at the end of each epoch; examples with many questions make epochs differ

    @classmethod
    def make(cls, pools: Sequence[DataStream], options: PlanOptions) -> Plan:
        """Builds a plan. Examples of similar length share a micro-batch, for less padding. A micro-batch of long
        examples has fewer of them, so that it does not have more slots than usual."""
        total_share = sum(pool.source.share for pool in pools)
        first, *rest = [
            _Visits(pool, number, options, options.batch_size * pool.source.share / total_share)
            for number, pool in enumerate(pools)
        ]
        updates, pairs, ends = [], [], []
        for epoch in range(options.epochs):
            for group in _bucket_by_length(first, epoch, options.length_bucket):
                updates.append(first.cut_micro_batches(group))
                pairs.append(first.pairs(group))
            ends.append(len(updates))
        for source_visits in rest:
            required_pairs = [count * source_visits.limit / first.limit for count in pairs]
            for update, group in enumerate(_spread_over_updates(source_visits, required_pairs, options.length_bucket)):
                updates[update] += source_visits.cut_micro_batches(group)
        return cls(options.seed, options.step, tuple(updates), tuple(ends))

    def __len__(self) -> int:
        return len(self.updates)

    def epoch(self, update: int) -> float:
        """Epochs completed when an update begins, with the fraction of the current one."""
        completed = bisect.bisect_right(self.epochs, update)
        first = self.epochs[completed - 1] if completed else 0
        return completed + (update - first) / (self.epochs[completed] - first)

    @property
    def place(self) -> RngKey:
        return RngKey(self.seed, self.step)


class _Visits:
    """The visits to one source: their order, and the pairs and slots of each.

    limit  pairs of the source in an update
    """

    def __init__(self, pool: DataStream, number: int, options: PlanOptions, limit: float) -> None:
        if not pool.examples:
            raise DataError("there is nothing to train on: the split has no examples")
        self.examples, self.number, self.options, self.limit = pool.examples, number, options, limit
        self.measure = pool.collate if options.length_bucket > 1 or options.micro_batch_size < limit else None
        self._pairs = [pool.collate.pairs(example) for example in pool.examples]
        self._slots = lru_cache(max(2, CACHED_LENGTHS // len(pool.examples)))(self._slots_of)

    def draw(self, what: str, epoch: int) -> random.Random:
        """The random numbers of this source for one purpose (`what`) in one epoch."""
        source_number = [self.number] if self.number else []
        return random.Random("/".join(map(str, (self.options.seed, self.options.step, what, epoch, *source_number))))

    def order(self, epoch: int, draw: random.Random) -> list[Sample]:
        """One epoch of the source in random order."""
        order = list(range(len(self.examples)))
        draw.shuffle(order)
        return [Sample(index, epoch, self.number) for index in order]

    def endless(self) -> Iterator[Sample]:
        """Epoch after epoch without end."""
        if not any(self._pairs):
            raise DataError("there is nothing to train on: the examples have no pair of an input and a question")
        for epoch in itertools.count():
            yield from self.order(epoch, self.draw("order", epoch))

    def pairs(self, visits: Sequence[Sample]) -> int:
        return sum(self._pairs[visit.index] for visit in visits)

    def slots(self, visit: Sample) -> float:
        return self._slots(visit.epoch)[visit.index]

    @cached_property
    def _tails(self) -> Sequence[float]:
        return self.measure.tails(self.examples) if self.measure else [1.0] * len(self.examples)

    def _slots_of(self, epoch: int) -> list[float]:
        """Slots of every example in one epoch, with one of each input's alternatives drawn."""
        if not self.measure:
            return [*self._tails]
        place = RngKey(self.options.seed, self.options.step)
        resolved = (place.resolve(example, epoch) for example in self.examples)
        return [self.measure.prefix(example) + tail for example, tail in zip(resolved, self._tails, strict=True)]

    def cut_micro_batches(self, group: Sequence[Sample]) -> tuple[tuple[Sample, ...], ...]:
        """Cuts an update's visits into micro-batches: each ends once its pairs reach `micro_batch_size`, or before its
        slots exceed a budget."""
        budget, max_pairs = math.inf, self.options.micro_batch_size
        if group and max_pairs < self.limit:
            budget = SLACK * max_pairs * sum(self._slots(group[0].epoch)) / max(1, sum(self._pairs))
        micro_batches: list[list[Sample]] = []
        slots_left, pairs_left = 0.0, 0
        for visit in sorted(group, key=lambda visit: (self.slots(visit), visit.epoch, visit.index)):
            if pairs_left <= 0 or self.slots(visit) > slots_left:
                micro_batches.append([])
                slots_left, pairs_left = budget, max_pairs
            micro_batches[-1].append(visit)
            slots_left, pairs_left = slots_left - self.slots(visit), pairs_left - self._pairs[visit.index]
        return tuple(map(tuple, micro_batches))


def _cut_at_limit(order: Sequence[Sample], visits: _Visits) -> list[list[Sample]]:
    """Cuts `order` into groups that end once their pairs reach the limit."""
    groups: list[list[Sample]] = []
    group: list[Sample] = []
    count = 0
    for visit in order:
        group.append(visit)
        count += visits.pairs([visit])
        if count >= visits.limit:
            groups.append(group)
            group, count = [], 0
    return groups + ([group] if group else [])


def _bucket_by_length(visits: _Visits, epoch: int, length_bucket: int) -> list[list[Sample]]:
    """Cuts an epoch into updates. Every `length_bucket` updates (at most a quarter of all, so that epochs differ)
    redistribute their examples by length; rows of equal length keep their order. The remainder goes to the next
    updates."""
    draw = visits.draw("order", epoch)
    groups = _cut_at_limit(visits.order(epoch, draw), visits)
    length_bucket = min(length_bucket, len(groups) // 4)
    if length_bucket < 2:
        return groups
    bucketed: list[list[Sample]] = []
    remaining: list[Sample] = []
    for first in range(0, len(groups), length_bucket):
        remaining += [visit for group in groups[first : first + length_bucket] for visit in group]
        cut = _cut_at_limit(sorted(remaining, key=visits.slots), visits)
        carry_over = first + length_bucket < len(groups) and visits.pairs(cut[-1]) < visits.limit
        remaining = cut.pop() if carry_over else []
        bucketed += cut
    draw.shuffle(bucketed)
    return bucketed


def _spread_over_updates(visits: _Visits, required_pairs: Sequence[float], length_bucket: int) -> list[list[Sample]]:
    """Cuts a source that repeats without end into its part of every update, with the required number of pairs. Every
    `length_bucket` updates redistribute these parts by length."""
    groups = _deal(visits.endless(), visits, required_pairs)
    length_bucket = min(length_bucket, len(groups) // 4)
    for first in range(0, len(groups), length_bucket) if length_bucket > 1 else ():
        places = [*range(first, min(first + length_bucket, len(groups)))]
        remaining = iter(sorted((visit for place in places for visit in groups[place]), key=visits.slots))
        visits.draw("shared", first).shuffle(places)
        cut = _deal(remaining, visits, [required_pairs[place] for place in places])
        cut[-1] += remaining
        for place, group in zip(places, cut, strict=True):
            groups[place] = group
    return groups


def _deal(order: Iterator[Sample], visits: _Visits, required_pairs: Sequence[float]) -> list[list[Sample]]:
    """Cuts `order` into one group per number of `required_pairs`. A group ends once the pairs of all groups so far
    reach the sum required so far."""
    groups: list[list[Sample]] = []
    required_so_far, taken = 0.0, 0
    for required in required_pairs:
        required_so_far += required
        groups.append([])
        while taken < required_so_far - 1e-6 and (visit := next(order, None)) is not None:
            groups[-1].append(visit)
            taken += visits.pairs([visit])
    return groups
