"""The plan of a step that is trained on a stream: update u takes the next `batch_size` positions."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from .plan import Plan, PlanOptions, Sample, Update


@dataclass(frozen=True)
class StreamUpdates:
    """The updates of a stream's plan, as `plan.Updates`. An example's epoch is its position, so that draws differ when
    the example comes again."""

    count: int
    batch_size: int
    micro_batch_size: int

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> Update:
        first = number * self.batch_size
        samples = [Sample(position, position) for position in range(first, first + self.batch_size)]
        return tuple(
            tuple(samples[start : start + self.micro_batch_size])
            for start in range(0, self.batch_size, self.micro_batch_size)
        )

    def micro_batches(self, number: int) -> int:
        return -(-self.batch_size // self.micro_batch_size)

    @cached_property
    def pairs(self) -> Sequence[int]:
        return array("Q", [self.batch_size]) * self.count


def stream_plan(options: PlanOptions) -> Plan:
    """The plan of a step whose only source is a stream. Every example counts as one pair. The only epoch ends
    with the last update."""
    assert options.updates is not None  # `mmgen check` refuses epochs
    micro_batch_size = min(options.micro_batch_size, options.batch_size)
    updates = StreamUpdates(options.updates, options.batch_size, micro_batch_size)
    return Plan(options.seed, options.step, updates, (options.updates,))
