"""The plan of a step: which examples each update learns from, in which micro-batches, by seed, step and epoch alone."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import DataError
from ..recipe.training import Training
from .seeds import RngKey
from .sizes import Sizes

ONE_MICRO_BATCH = sys.maxsize  # as `micro_batch_size`: a micro-batch has all of an update's examples of its source
SLACK = 1.25  # slots of a micro-batch, at most, relative to the average for its pairs


@dataclass(frozen=True)
class MicroBatch:
    """Examples of one source, by length.

    indices  (k) of the examples in the source
    passes   (k) how often the source has been gone through before each of them, which their random draws depend on
    """

    source: int
    indices: np.ndarray
    passes: np.ndarray


@dataclass(frozen=True)
class _Epoch:
    """The examples of a source in an epoch of the plan, as m visits in the order of the updates.

    indices, passes  (m) of every visit
    slots            (m) of its row
    ends             where each group of visits ends
    order            the group of each update
    budget           slots for a pair, with some slack
    """

    indices: np.ndarray
    passes: np.ndarray
    slots: np.ndarray
    ends: np.ndarray
    order: np.ndarray
    budget: float


class Plan:
    """The examples of every optimiser update of a step, a function of the seed, the step, the sizes and the settings;
    only the current epoch is in memory.

    Every epoch draws the order of the examples and is cut into updates of equal pairs (one input and one question), as
    far as whole examples allow. `length_bucket` updates at a time redistribute their examples by length, short rows to
    one update and long rows to another, and then the updates are shuffled. Micro-batches do not depend on the number of
    processes, so that any number of processes computes the same.

    With several sources, an epoch is one pass over the first. The pairs of the sources are in proportion to their
    shares; the other sources repeat without end, and epoch e has their pairs from e * R to (e + 1) * R.
    """

    def __init__(
        self, sizes: Sequence[Sizes], key: RngKey, training: Training, shares: Sequence[float] = (1.0,)
    ) -> None:
        """`shares`: of the sources in an update. Raises DataError for a source without targets."""
        totals = [int(source.pairs.sum()) for source in sizes]
        if not all(totals):
            raise DataError("the examples have no target to train on")
        self.sizes, self.key, self.training = sizes, key, training
        self._limits = [training.batch_size * share / sum(shares) for share in shares]
        self._pairs = [max(1, round(totals[0] * limit / self._limits[0])) for limit in self._limits]  # R of each source
        self.updates_per_epoch = min(math.ceil(totals[0] / self._limits[0]), len(sizes[0]))
        self._current: tuple[int, list[_Epoch]] = -1, []

    def __len__(self) -> int:
        return self.training.updates or self.updates_per_epoch * (self.training.epochs or 0)

    def epoch(self, update: int) -> float:
        """Epochs completed when an update begins, with the fraction of the current one."""
        return update / self.updates_per_epoch

    def ends_epoch(self, done: int) -> bool:
        """Whether an epoch, or the plan, ends with the last of so many updates."""
        return done > 0 and (done % self.updates_per_epoch == 0 or done == len(self))

    def pairs(self, updates: int) -> int:
        """The pairs of the first updates, to rounding."""
        return round(updates * sum(self._pairs) / self.updates_per_epoch)

    def update(self, number: int, micro_batch_size: int) -> list[MicroBatch]:
        """The micro-batches of an update. `micro_batch_size` counts pairs: a micro-batch ends once its pairs reach it,
        or before its rows have more slots than usual."""
        epoch, place = divmod(number, self.updates_per_epoch)
        if epoch != self._current[0]:
            self._current = -1, []  # not two epochs in memory
            self._current = epoch, [self._draw(source, epoch) for source in range(len(self.sizes))]
        return [
            MicroBatch(source, of_source.indices[visits], of_source.passes[visits])
            for source, of_source in enumerate(self._current[1])
            for visits in self._cut_micro_batches(source, of_source, place, micro_batch_size)
        ]

    def _draw(self, source: int, epoch: int) -> _Epoch:
        """An epoch of a source. What is not needed any more is freed: n may be large."""
        sizes, visits = self.sizes[source], [*self._visits(source, epoch)]
        indices = np.concatenate([visited for _, visited in visits])
        ends = cut(sizes.pairs[indices], self.updates_per_epoch)
        slots = np.concatenate([sizes.slots(self.key, number)[visited] for number, visited in visits])
        passes = np.concatenate([np.full(len(visited), number, np.int32) for number, visited in visits])
        length_bucket = min(self.training.length_bucket, len(ends) // 4)  # so that epochs differ
        if length_bucket > 1:
            for first in range(0, len(ends), length_bucket):
                begin, groups = int(ends[first - 1]) if first else 0, ends[first : first + length_bucket]
                bucket = slice(begin, int(groups[-1]))
                by_length = np.argsort(slots[bucket], kind="stable")
                for column in (indices, passes, slots):
                    column[bucket] = column[bucket][by_length]
                groups[:] = begin + cut(sizes.pairs[indices[bucket]], len(groups))
        order = np.argsort(self.key.scramble(np.arange(len(ends), dtype=np.uint64), "updates", epoch, source))
        budget = SLACK * float(slots.sum()) / max(1, int(sizes.pairs[indices].sum()))
        return _Epoch(indices, passes, slots, ends, order, budget)

    def _visits(self, source: int, epoch: int) -> Iterator[tuple[int, np.ndarray]]:
        """The number of each pass over a source that an epoch has a part of, and the indices of its examples, in drawn
        order."""
        sizes, first, end = self.sizes[source], epoch * self._pairs[source], (epoch + 1) * self._pairs[source]
        total = int(sizes.pairs.sum())
        for number in range(first // total, -(-end // total)):
            order = np.argsort(self.key.scramble(sizes.ids, "order", number, source), kind="stable").astype(np.int32)
            if number * total < first or end < (number + 1) * total:  # a part of a pass
                pairs = sizes.pairs[order]
                starts = np.minimum(np.cumsum(pairs, dtype=np.int64) - pairs, total - 1) + number * total
                order = order[(first <= starts) & (starts < end)]
            yield number, order

    def _cut_micro_batches(self, source: int, epoch: _Epoch, update: int, micro_batch_size: int) -> list[np.ndarray]:
        """The visits of each micro-batch of an update of a source, by length."""
        group = epoch.order[update]
        visits = np.arange(epoch.ends[group - 1] if group else 0, epoch.ends[group])
        visits = visits[np.argsort(epoch.slots[visits], kind="stable")]
        if micro_batch_size >= self._limits[source] or not len(visits):
            return [visits] * bool(len(visits))
        ends, pairs, slots = list[int](), 0, 0.0
        budget = epoch.budget * micro_batch_size
        rows = zip(self.sizes[source].pairs[epoch.indices[visits]].tolist(), epoch.slots[visits].tolist(), strict=True)
        for place, (its_pairs, its_slots) in enumerate(rows):
            if place and (pairs >= micro_batch_size or slots + its_slots > budget):
                ends.append(place)
                pairs, slots = 0, 0.0
            pairs, slots = pairs + its_pairs, slots + its_slots
        return np.split(visits, ends)


def cut(pairs: np.ndarray, count: int) -> np.ndarray:
    """Where `count` groups of examples with these pairs, in order, end: each once the pairs so far reach its share of
    the total. None is empty if there are enough examples."""
    if not len(pairs):
        return np.zeros(count, np.int64)
    total, numbers = pairs.astype(np.int64), np.arange(1, count + 1)
    np.cumsum(total, out=total)
    ends = np.searchsorted(total, -(-total[-1] * numbers // count)) + 1
    if len(pairs) >= count:
        ends = np.maximum.accumulate(ends - numbers) + numbers
        ends = np.minimum(ends, len(pairs) - count + numbers)
    ends[-1] = len(pairs)
    return ends
