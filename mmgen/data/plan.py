"""The plan of a step: which examples each update learns from, in which micro-batches, by seed, step and epoch alone."""

from __future__ import annotations

import bisect
import itertools
import math
import random
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, ClassVar, overload

from ..errors import DataError
from .example_sizes import Measures
from .seeds import RngKey
from .sources import DataStream

if TYPE_CHECKING:
    from .stream_plan import StreamUpdates

CACHED_LENGTHS = 100_000  # row lengths in memory; at least those of one epoch
ONE_MICRO_BATCH = sys.maxsize  # as `micro_batch_size`: a micro-batch has all of an update's examples of its source
SLACK = 1.25  # slots of a micro-batch, at most, relative to the average for its pairs


@dataclass(frozen=True)
class Sample:
    """One example of a source in one epoch of that source."""

    index: int
    epoch: int
    source: int = 0


Update = tuple[tuple[Sample, ...], ...]  # its micro-batches


@dataclass(frozen=True)
class PlanOptions:
    """The settings of a plan. `batch_size` and `micro_batch_size` count pairs. `updates`: the length of the plan, where
    `epochs` is None."""

    seed: int
    step: str
    epochs: int | None
    batch_size: int
    micro_batch_size: int
    length_bucket: int = 1  # updates that redistribute their examples by length
    updates: int | None = None


@dataclass(eq=True)
class Updates(Sequence[Update]):
    """The updates of a plan as arrays, 9 bytes for a sample; `updates[u]` is a tuple of micro-batches, each a tuple of
    samples of one source.

    indices, epochs, sources  of every sample
    micro_ends                where each micro-batch ends among the samples
    ends                      where each update ends among the micro-batches
    pairs                     of every update
    """

    KINDS: ClassVar[Mapping[str, str]] = {  # of the arrays
        **dict.fromkeys(("indices", "epochs"), "I"),
        "sources": "B",
        **dict.fromkeys(("micro_ends", "ends", "pairs"), "Q"),
    }

    indices: array[int]
    epochs: array[int]
    sources: array[int]
    micro_ends: array[int]
    ends: array[int]
    pairs: array[int]

    @classmethod
    def empty(cls) -> Updates:
        return cls(**{name: array(kind) for name, kind in cls.KINDS.items()})

    def add_micro_batch(self, samples: Sequence[int], source: int, examples: int) -> None:
        """Append a micro-batch to the update that `close` ends. A sample is epoch * examples + index."""
        self.indices.extend([sample % examples for sample in samples])
        self.epochs.extend([sample // examples for sample in samples])
        self.sources.extend([source] * len(samples))
        self.micro_ends.append(len(self.indices))

    def close(self, pairs: int) -> None:
        """End an update."""
        self.ends.append(len(self.micro_ends))
        self.pairs.append(pairs)

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, number: int) -> Update: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[Update]: ...

    def __getitem__(self, number: int | slice) -> Update | Sequence[Update]:
        if isinstance(number, slice):
            return tuple(self[place] for place in range(*number.indices(len(self))))
        place = range(len(self))[number]
        first = self.ends[place - 1] if place else 0
        return tuple(self._micro_batch(micro) for micro in range(first, self.ends[place]))

    def _micro_batch(self, micro: int) -> tuple[Sample, ...]:
        first, end = self.micro_ends[micro - 1] if micro else 0, self.micro_ends[micro]
        columns = (self.indices[first:end], self.epochs[first:end], self.sources[first:end])
        return tuple(itertools.starmap(Sample, zip(*columns, strict=True)))

    def micro_batches(self, number: int) -> int:
        """How many micro-batches an update has."""
        return self.ends[number] - (self.ends[number - 1] if number else 0)


@dataclass(frozen=True)
class Plan:
    """The examples of every optimiser update of a step: `updates[u]` lists micro-batches, each a list of samples of one
    source.

    Every epoch draws the order of the examples, and an update has `batch_size` pairs (one input and one question) or a
    few more. `length_bucket` updates at a time redistribute their examples by length, short rows to one update and long
    rows to another, and then these updates are shuffled. Micro-batches do not depend on the number of processes, so
    that any number of processes computes the same.

    With several sources, an epoch is one epoch of the first source. In every update the pairs of the sources are in
    proportion to their shares, as closely as whole examples allow; the other sources repeat without end.

    cut  updates that the last epoch would have beyond the plan's end, with `PlanOptions.updates`
    """

    seed: int
    step: str
    updates: Updates | StreamUpdates
    epochs: tuple[int, ...]  # updates done at the end of each epoch; examples with many questions make epochs differ
    cut: int = 0

    @classmethod
    def make(cls, streams: Sequence[DataStream], options: PlanOptions) -> Plan:
        """Builds a plan. Examples of similar length share a micro-batch, for less padding. A micro-batch of long
        examples has fewer of them, so that it does not have more slots than usual."""
        total_share = sum(stream.source.share for stream in streams)
        first, *rest = [
            _Samples(stream, number, options, options.batch_size * stream.source.share / total_share)
            for number, stream in enumerate(streams)
        ]
        groups: list[array[int]] = []
        ends = []
        for epoch in itertools.count() if options.epochs is None else range(options.epochs):
            groups += map(_as_array, _bucket_by_length(first, epoch, options.length_bucket))
            ends.append(len(groups))
            if options.updates is not None and len(groups) >= options.updates:
                break
        cut = len(groups) - (options.updates or len(groups))
        groups, ends[-1] = groups[: len(groups) - cut], len(groups) - cut
        parts = [(first, groups)]
        pairs = [*map(first.pairs, groups)]
        for samples in rest:
            required_pairs = [count * samples.limit / first.limit for count in pairs]
            spread = _spread_over_updates(samples, required_pairs, options.length_bucket)
            parts.append((samples, [*map(_as_array, spread)]))
        updates = Updates.empty()
        for number in range(len(groups)):
            for samples, of_updates in parts:
                for micro_batch in samples.cut_micro_batches(of_updates[number]):
                    updates.add_micro_batch(micro_batch, samples.number, samples.count)
            updates.close(sum(samples.pairs(of_updates[number]) for samples, of_updates in parts))
        return cls(options.seed, options.step, updates, tuple(ends), cut)

    def __len__(self) -> int:
        return len(self.updates)

    def pairs(self, first: int = 0, end: int | None = None) -> int:
        """The pairs of the updates from `first` to before `end`."""
        return sum(self.updates.pairs[first:end])

    def epoch(self, update: int) -> float:
        """Epochs completed when an update begins, with the fraction of the current one."""
        completed = bisect.bisect_right(self.epochs, update)
        first = self.epochs[completed - 1] if completed else 0
        end = self.epochs[completed] + self.cut * (completed == len(self.epochs) - 1)
        return completed + (update - first) / (end - first)

    @property
    def place(self) -> RngKey:
        return RngKey(self.seed, self.step)


def _as_array(samples: Sequence[int]) -> array[int]:
    return array("Q", samples)


class _Samples:
    """The samples of one source: their order, and the pairs and slots of each. A sample is one integer, epoch * count +
    index.

    count  examples of the source
    limit  pairs of the source in an update
    """

    def __init__(self, stream: DataStream, number: int, options: PlanOptions, limit: float) -> None:
        if not len(stream.source.examples):
            raise DataError("the split has no examples to train on")
        self.stream, self.number, self.options, self.limit = stream, number, options, limit
        sized = options.length_bucket > 1 or options.micro_batch_size < limit
        self.measures = stream.source.measures or Measures.of(stream.source.examples, stream.collate, sized)
        self.sized, self.count = sized, len(self.measures)
        self._slots = lru_cache(max(2, CACHED_LENGTHS // self.count))(self._slots_of)
        self._mean = lru_cache(2)(self._mean_slots)

    def draw(self, what: str, epoch: int) -> random.Random:
        """The random numbers of this source for one purpose (`what`) in one epoch."""
        source_number = [self.number] if self.number else []
        return random.Random("/".join(map(str, (self.options.seed, self.options.step, what, epoch, *source_number))))

    def order(self, epoch: int, draw: random.Random) -> list[int]:
        """One epoch of the source in random order."""
        order = list(range(epoch * self.count, (epoch + 1) * self.count))
        draw.shuffle(order)
        return order

    def endless(self) -> Iterator[int]:
        """Epoch after epoch without end."""
        if not any(self.measures.pairs):
            raise DataError("the examples have no target to train on")
        for epoch in itertools.count():
            yield from self.order(epoch, self.draw("order", epoch))

    def pairs(self, samples: Sequence[int]) -> int:
        pairs, count = self.measures.pairs, self.count
        return sum([pairs[sample % count] for sample in samples])

    def slots(self, sample: int) -> float:
        return self._slots(sample // self.count)[sample % self.count]

    @cached_property
    def _total_pairs(self) -> int:
        return sum(self.measures.pairs)

    def _slots_of(self, epoch: int) -> Sequence[float]:
        """Slots of every example in one epoch, with one of each input's alternatives drawn."""
        place = RngKey(self.options.seed, self.options.step)
        if not self.sized:
            return array("d", [1.0]) * self.count
        if self.measures.complete:
            return self.measures.slots_in(epoch, place)
        collate = self.stream.collate
        resolved = (place.resolve(example, epoch) for example in self.stream.source.examples)
        tails = collate.tails(self.stream.source.examples)
        return array("d", [collate.prefix(example) + tail for example, tail in zip(resolved, tails, strict=True)])

    def _mean_slots(self, epoch: int) -> float:
        """The slots of a micro-batch of average examples, with some slack."""
        return SLACK * self.options.micro_batch_size * sum(self._slots(epoch)) / max(1, self._total_pairs)

    def cut_micro_batches(self, group: Sequence[int]) -> list[list[int]]:
        """Cuts an update's samples into micro-batches: each ends once its pairs reach `micro_batch_size`, or before its
        slots exceed a budget."""
        budget, max_pairs = math.inf, self.options.micro_batch_size
        if group and max_pairs < self.limit:
            budget = self._mean(group[0] // self.count)
        micro_batches: list[list[int]] = []
        slots_left, pairs_left = 0.0, 0
        for slots, sample in sorted(zip(map(self.slots, group), group, strict=True)):
            if pairs_left <= 0 or slots > slots_left:
                micro_batches.append([])
                slots_left, pairs_left = budget, max_pairs
            micro_batches[-1].append(sample)
            slots_left, pairs_left = slots_left - slots, pairs_left - self.measures.pairs[sample % self.count]
        return micro_batches


def _cut_at_limit(order: Sequence[int], samples: _Samples) -> list[list[int]]:
    """Cuts `order` into groups that end once their pairs reach the limit."""
    groups: list[list[int]] = []
    group: list[int] = []
    count, pairs, examples = 0, samples.measures.pairs, samples.count
    for sample in order:
        group.append(sample)
        count += pairs[sample % examples]
        if count >= samples.limit:
            groups.append(group)
            group, count = [], 0
    return groups + ([group] if group else [])


def _bucket_by_length(samples: _Samples, epoch: int, length_bucket: int) -> list[list[int]]:
    """Cuts an epoch into updates. Every `length_bucket` updates (at most a quarter of all, so that epochs differ)
    redistribute their examples by length; rows of equal length keep their order. The remainder goes to the next
    updates."""
    draw = samples.draw("order", epoch)
    groups = _cut_at_limit(samples.order(epoch, draw), samples)
    length_bucket = min(length_bucket, len(groups) // 4)
    if length_bucket < 2:
        return groups
    bucketed: list[list[int]] = []
    remaining: list[int] = []
    for first in range(0, len(groups), length_bucket):
        remaining += [sample for group in groups[first : first + length_bucket] for sample in group]
        cut = _cut_at_limit(sorted(remaining, key=samples.slots), samples)
        carry_over = first + length_bucket < len(groups) and samples.pairs(cut[-1]) < samples.limit
        remaining = cut.pop() if carry_over else []
        bucketed += cut
    draw.shuffle(bucketed)
    return bucketed


def _spread_over_updates(samples: _Samples, required_pairs: Sequence[float], length_bucket: int) -> list[list[int]]:
    """Cuts a source that repeats without end into its part of every update, with the required number of pairs. Every
    `length_bucket` updates redistribute these parts by length."""
    groups = _deal_into_groups(samples.endless(), samples, required_pairs)
    length_bucket = min(length_bucket, len(groups) // 4)
    for first in range(0, len(groups), length_bucket) if length_bucket > 1 else ():
        places = [*range(first, min(first + length_bucket, len(groups)))]
        remaining = iter(sorted((sample for place in places for sample in groups[place]), key=samples.slots))
        samples.draw("shared", first).shuffle(places)
        cut = _deal_into_groups(remaining, samples, [required_pairs[place] for place in places])
        cut[-1] += remaining
        for place, group in zip(places, cut, strict=True):
            groups[place] = group
    return groups


def _deal_into_groups(order: Iterator[int], samples: _Samples, required_pairs: Sequence[float]) -> list[list[int]]:
    """Cuts `order` into one group per number of `required_pairs`. A group ends once the pairs of all groups so far
    reach the sum required so far."""
    groups: list[list[int]] = []
    required_so_far, taken = 0.0, 0
    for required in required_pairs:
        required_so_far += required
        groups.append([])
        while taken < required_so_far - 1e-6 and (sample := next(order, None)) is not None:
            groups[-1].append(sample)
            taken += samples.measures.pairs[sample % samples.count]
    return groups
