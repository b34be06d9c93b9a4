"""From examples to batches: what is drawn for a visit, how an update is put together, and the loader that does it.

Everything here is a function of (seed, step, epoch, update): there is no sampler state to save. What resumes, repeats
and is split over processes follows from that.
"""

from __future__ import annotations

import bisect
import math
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import torch
from torch.utils.data import DataLoader

from .errors import DataError
from .tensors import Batch, Example

if TYPE_CHECKING:
    from .model import Model


T = TypeVar("T")
REMEMBERED = 300_000  # texts whose tokens are kept; VQA has 250,000 questions to learn from
MEASURED = 10_000  # examples whose targets are tokenised at a time to tell their lengths
SLACK = 1.25  # a micro-batch may have so many times the slots that its pairs have on average


def settle(example: Example, draw: random.Random | None = None) -> Example:
    """The example with one of each input's alternatives: drawn where `draw` is given, else the first."""
    chosen = {}
    for name, value in example.inputs.items():
        if isinstance(value, tuple):
            if not value:
                continue
            value = draw.choice(value) if draw else value[0]
        chosen[name] = value
    return replace(example, inputs=chosen)


class Collator:
    """Settled examples -> Batch. Holds readers and the generator's layout, and nothing that lives on a device.

    inputs   names of the inputs a step reads, in the recipe's order
    targets  whether questions are laid out too
    """

    def __init__(self, model: Model, inputs: Sequence[str], targets: bool = True) -> None:
        self.readers = {name: model.embedders[name].reader for name in model.inputs if name in inputs}
        self.tokenizer, self.end_id = model.backbone.tokenizer, model.backbone.end_id
        self.lay_out = model.generator.lay_out if targets else None
        self.max_tokens = model.generator.max_tokens
        self._known: dict[str, list[int]] = {}  # tokens of targets: the same ones come again every epoch

    def __call__(self, examples: Sequence[Example]) -> Batch:
        inputs = {
            name: reader.collate([reader.read(example) for example in examples])
            for name, reader in self.readers.items()
        }
        tail = self.lay_out([self.targets(example) for example in examples]) if self.lay_out else None
        return Batch(tuple(example.id for example in examples), inputs, tail)

    def targets(self, example: Example) -> list[list[int]]:
        """Token ids of an example's targets, cut to the generator's limit, the end token last."""
        if not example.targets:
            raise DataError(f"example '{example.id}' has no target to learn from")
        return [tokens[: self.max_tokens - 1] + [self.end_id] for tokens in self._tokens(example.targets)]

    def slots(self, examples: Sequence[Example]) -> list[float]:
        """About how many slots each settled example's row takes: its prefix and, where they are laid out, its
        targets."""
        tails = self.tails(examples) if self.lay_out else [0] * len(examples)
        return [self.prefix(example) + tail for example, tail in zip(examples, tails, strict=True)]

    def prefix(self, example: Example) -> float:
        """About how many slots a settled example's prefix takes."""
        return sum(1 + reader.slots(example) for reader in self.readers.values())

    def tails(self, examples: Sequence[Example]) -> list[int]:
        """How many slots each example's targets take: of T tokens, T - 1 are written and T are asked for."""
        found = []
        for first in range(0, len(examples), MEASURED):
            some = examples[first : first + MEASURED]
            tokens = iter(self._tokens([text for example in some for text in example.targets]))
            found += [
                sum(2 * min(len(next(tokens)) + 1, self.max_tokens) - 1 for _ in example.targets) for example in some
            ]
        return found

    def cut(self, examples: Sequence[Example]) -> int:
        """How many targets are longer than the limit."""
        texts = [text for example in examples for text in example.targets]
        return sum(len(tokens) >= self.max_tokens for tokens in self._tokens(texts)) if texts else 0

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            if len(self._known) > REMEMBERED:
                self._known.clear()
                new = list(dict.fromkeys(texts))
            ids = self.tokenizer(new, add_special_tokens=False, verbose=False)["input_ids"]
            self._known.update(zip(new, ids, strict=True))
        return [self._known[text] for text in texts]


@dataclass(frozen=True)
class Visit:
    """One example in one epoch."""

    index: int
    epoch: int


@dataclass(frozen=True)
class Plan:
    """What every optimiser update of a step learns from: `updates[u]` lists micro-batches, each a list of visits.

    Examples come in an order drawn for each epoch, and an update has `batch_size` pairs (one input and one question) or
    a few more. `bucket` updates at a time share their examples out by length, the short rows to one, the long ones to
    another, and then come in an order that is drawn too. Micro-batches do not depend on the number of processes, so
    that any number computes the same."""

    seed: int
    step: str
    updates: tuple[tuple[tuple[Visit, ...], ...], ...]
    epochs: tuple[
        int, ...
    ]  # updates done when each epoch ends; epochs differ where examples have unlike numbers of questions

    @classmethod
    def make(
        cls,
        examples: Sequence[Example],
        *,
        seed: int,
        step: str,
        epochs: int,
        batch_size: int,
        micro_batch: int,
        bucket: int = 1,
        lengths: Collator | None = None,
    ) -> Plan:
        """`batch_size` and `micro_batch` count pairs. Examples of like length share a micro-batch, for less padding,
        and where they are long it holds fewer, lest its slots be far more than usual. `lengths`: tells how long rows
        are; all are alike by default."""
        if not examples:
            raise DataError("there is nothing to learn from: the split has no examples")
        pairs = [len(example.targets) for example in examples]
        told = lengths if bucket > 1 or micro_batch < batch_size else None
        tails = told.tails(examples) if told else [1] * len(examples)
        updates, ends = [], []
        for epoch in range(epochs):
            order = list(range(len(examples)))
            draw = random.Random(f"{seed}/{step}/order/{epoch}")
            draw.shuffle(order)
            slots = (
                [
                    told.prefix(_seen(seed, step, epoch, example)) + tail
                    for example, tail in zip(examples, tails, strict=True)
                ]
                if told
                else tails
            )
            budget = SLACK * micro_batch * sum(slots) / max(1, sum(pairs)) if micro_batch < batch_size else math.inf
            for chunk in _bucketed(order, pairs, slots, batch_size, bucket, draw):
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

    def draw(self, example: Example, visit: Visit) -> Example:
        """The example as it is seen on this visit: which of several captions is drawn here."""
        return _seen(self.seed, self.step, visit.epoch, example)


def _seen(seed: int, step: str, epoch: int, example: Example) -> Example:
    several = any(isinstance(value, tuple) for value in example.inputs.values())
    return settle(example, random.Random(f"{seed}/{step}/{epoch}/{example.id}")) if several else example


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
    """`order` cut into updates. Of every `bucket` of them, but of no more than a quarter of them all, lest every epoch
    share out alike, the examples are shared out by length; rows of one length stay as drawn. What is left over goes to
    the next ones."""
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


class MicroBatches(torch.utils.data.Dataset):
    """The micro-batches of one process from an update on, each ready to learn from; item i is made by any worker."""

    def __init__(
        self, examples: Sequence[Example], plan: Plan, collate: Collator, start: int, rank: int, world: int
    ) -> None:
        self.examples, self.plan, self.collate = examples, plan, collate
        self.places = [
            (update, micro)
            for update in range(start, len(plan))
            for micro in share(len(plan.updates[update]), rank, world)
        ]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, place: int) -> tuple[int, int, Batch]:
        update, micro = self.places[place]
        visits = self.plan.updates[update][micro]
        return update, micro, self.collate([self.plan.draw(self.examples[visit.index], visit) for visit in visits])


def share(micros: int, rank: int, world: int) -> list[int]:
    """The micro-batches of an update that fall to a process. One that gets none repeats the last (with no weight),
    since every process must take part in the averaging of gradients."""
    return list(range(rank, micros, world)) or [micros - 1]


def updates(
    examples: Sequence[Example],
    plan: Plan,
    collate: Collator,
    *,
    start: int = 0,
    rank: int = 0,
    world: int = 1,
    workers: int = 0,
    pin: bool = False,
) -> Iterator[tuple[int, list[tuple[int, Batch]]]]:
    """(update, its micro-batches with their numbers) for one process, from `start` to the end."""
    micro_batches = MicroBatches(examples, plan, collate, start, rank, world)
    loader = DataLoader(micro_batches, batch_size=None, num_workers=workers, pin_memory=pin, persistent_workers=False)
    current, gathered = start, []
    for update, micro, batch in loader:
        if update != current:
            yield current, gathered
            current, gathered = update, []
        gathered.append((micro, batch))
    if gathered:
        yield current, gathered


def in_order(slots: Sequence[float], batch_size: int) -> Iterator[list[int]]:
    """Indices of examples in batches for evaluation; those whose rows take as many slots go together."""
    order = sorted(range(len(slots)), key=lambda index: (slots[index], index))
    for first in range(0, len(order), batch_size):
        yield order[first : first + batch_size]


def watched(batches: Iterable[T], waits: list[float]) -> Iterator[T]:
    """The same batches; how long each was waited for, in seconds, goes to the end of `waits`."""
    source = iter(batches)
    while True:
        began = time.perf_counter()
        batch = next(source, None)
        if batch is None:
            return
        waits.append(time.perf_counter() - began)
        yield batch
