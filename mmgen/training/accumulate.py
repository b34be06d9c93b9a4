"""Accumulate: an update's gradients, over micro-batches, processes, and the pieces of what does not fit into memory.

Counts come with the batches. They are added up over micro-batches and processes before the first pass, and every pass
goes backward on its summed losses over the update's counts. So the gradients are those of the means over the whole
update, however it is split, and several losses keep counts of their own. Dropout is drawn anew for every
micro-batch from (seed, step, update, micro-batch), so neither a resume nor another number of processes changes it.

An update that runs out of memory is tried again with every micro-batch cut in two, in all processes alike. A half draws
its dropout from (seed, step, update, micro-batch, half), so the gradient is that of the same loss with other dropout;
without dropout it is the same gradient. The cut stays for the rest of the step, is in the log (`halved`) and the
checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from accelerate.utils.memory import clear_device_cache
from torch import Tensor, nn

from ..data.plan import Plan, Pool, Visit
from ..data.seeds import draw_from
from ..errors import RunError
from ..oom import ADVICE_SMALLER, halves, out_of_memory
from ..tensors import Batch, Example, Loss
from .checkpoint import Cursor
from .context import StepContext
from .distributed import all_reduce_sum, any_rank
from .fsdp import too_large

Micros = Sequence[tuple[int, Batch]]  # micro-batches of one process, each with its number in the update
Cell = tuple[int, str]  # a source, by its number, and one of the losses that are learnt from it
Piece = tuple[tuple[int, ...], Batch]  # where in an update a piece is, and the piece
Losses = list[tuple[Batch, Tensor]]  # what this process has passed through the model, and each one's share of the loss


@dataclass(frozen=True)
class Means:
    """The losses of an update, over all processes."""

    loss: float  # what is learnt: the weighted sum of the means
    each: dict[str, float]  # loss -> its mean; of those that counted anything
    by_source: dict[str, dict[str, float]]  # the same of every source by itself


@dataclass(frozen=True)
class Material:
    """What a step learns from: `plan` says which of the pools' examples an update takes."""

    plan: Plan
    pools: Sequence[Pool]

    @property
    def cells(self) -> list[Cell]:
        """All losses, of every source by itself."""
        return [(number, name) for number, pool in enumerate(self.pools) for name in pool.collate.losses]

    @property
    def losses(self) -> tuple[str, ...]:
        """Names of all losses."""
        return tuple(dict.fromkeys(name for _, name in self.cells))

    def source(self, number: int, micro: int) -> int:
        """Which source an update's micro-batch is from."""
        return self.plan.updates[number][micro][0].source

    def pairs(self, visit: Visit) -> int:
        pool = self.pools[visit.source]
        return pool.collate.pairs(pool.examples[visit.index])

    def cut(self, number: int, micro: int, times: int) -> list[list[tuple[Example, int]]]:
        """The examples of an update's micro-batch, each with its pass over the data, cut in two so many times; a single
        one's questions are parted, and a single pair stays whole."""
        pool = self.pools[self.source(number, micro)]
        pieces = [[(pool.examples[visit.index], visit.epoch) for visit in self.plan.updates[number][micro]]]
        for _ in range(times):
            pieces = [half for piece in pieces for half in halves(piece, pool.cut_in_two)]
        return pieces

    def pieces(self, number: int, micro: int, whole: Batch, times: int) -> Iterator[Piece]:
        """A micro-batch, or what it is cut into."""
        if not times:
            yield (micro,), whole
            return
        pool = self.pools[self.source(number, micro)]
        for piece, visited in enumerate(self.cut(number, micro, times)):
            yield (micro, piece, times), pool.batch(visited)

    def passes(self, number: int, times: int, world: int) -> int:
        """How many passes the process makes that has most of them in an update."""
        pieces = [len(self.cut(number, micro, times)) for micro in range(len(self.plan.updates[number]))]
        return max(sum(pieces[rank::world]) for rank in range(world))


class Accumulator:
    """Adds up the gradients of a step's updates.

    loss      the losses of a batch on this process's device
    learning  the parameters that learn, by name
    sharded   whether processes hold slices of them, which add up by themselves (see `fsdp`)
    slots     real slots of the rows so far, and all that were run through the encoder (2,); 0 where generators do not
              say
    """

    def __init__(
        self,
        context: StepContext,
        material: Material,
        cursor: Cursor,
        loss: Callable[[Batch], Loss],
        learning: Mapping[str, nn.Parameter],
        sharded: bool,
    ) -> None:
        self.context, self.material, self.cursor = context, material, cursor
        self.loss, self.learning, self.sharded = loss, learning, sharded
        self.accelerator = context.accelerator
        self.slots = torch.zeros(2, dtype=torch.int64, device=self.accelerator.device)

    def gradients(self, number: int, micros: Micros, stop: Callable[[], bool]) -> tuple[Losses, Means, bool]:
        """The gradients of an update's loss, over all processes, are left where torch leaves them. Returns this
        process's losses, the means over all, and whether `stop()` was true in any process. Raises RunError when a
        single pair does not fit into memory."""
        spare = micros[-1]
        if self.accelerator.process_index >= len(self.material.plan.updates[number]):
            micros = ()  # there are fewer micro-batches than processes
        counts = self._counts(number, micros)
        while True:
            found = self._attempt(number, micros, spare, counts)
            mine = [parameter.grad is not None for parameter in self.learning.values()]
            stopping, again, *anywhere = any_rank(self.accelerator, [stop(), found is None, *mine])
            if found is not None and not again:
                break
            self._halve(number, micros, failed=found is None)
        losses, totals = found
        reached = [
            parameter
            for parameter, has in zip(self.learning.values(), anywhere, strict=True)
            if has and not self.sharded
        ]
        gradients = []
        for parameter in reached:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            gradients.append(parameter.grad)
        all_reduce_sum(self.accelerator, [totals, *gradients])
        return losses, self._means(totals.tolist(), counts), stopping

    def _means(self, totals: Sequence[float], counts: Mapping[Cell, float]) -> Means:
        """What `_attempt` has summed up, over its counts."""
        loss, *sums = totals
        whole, each = _by_name(counts), dict(zip(counts, sums, strict=True))
        by_source: dict[str, dict[str, float]] = {}
        for (number, name), total in each.items():
            of_source = by_source.setdefault(self.material.pools[number].source.name, {})
            of_source[name] = total / counts[number, name]
        return Means(loss, {name: total / whole[name] for name, total in _by_name(each).items()}, by_source)

    def _counts(self, number: int, micros: Micros) -> dict[Cell, float]:
        """Over how many things the losses of an update are sums, in all processes; those that count nothing are left
        out."""
        names = self.material.cells
        sources = [(self.material.source(number, micro), batch.counts) for micro, batch in micros]
        own = [sum(counts.get(name, 0) for source, counts in sources if source == of) for of, name in names]
        if self.accelerator.num_processes > 1:
            together = torch.tensor(own, dtype=torch.float64, device=self.accelerator.device)
            all_reduce_sum(self.accelerator, [together])
            own = together.tolist()
        return {name: count for name, count in zip(names, own, strict=True) if count}

    def _attempt(
        self, number: int, micros: Micros, spare: tuple[int, Batch], counts: Mapping[Cell, float]
    ) -> tuple[Losses, Tensor] | None:
        """The losses of this process's micro-batches, and their sums: what is learnt, then every cell of `counts`, in
        float64; None without memory. Of a sharded model every process makes as many passes, those with fewer
        micro-batches through `spare`, with no weight; and it raises RunError without memory, since the others wait
        half-way."""
        losses: Losses = []
        totals = torch.zeros(1 + len(counts), dtype=torch.float64, device=self.accelerator.device)
        # `fully_shard` gives the mean of gradients over processes, and not their sum
        scale = self.accelerator.num_processes if self.sharded else 1
        slots, whole_counts = self.slots.clone(), _by_name(counts)
        try:
            for micro, whole in micros:
                for place, batch in self.material.pieces(number, micro, whole, self.cursor.halved):
                    batch = batch.to(self.accelerator.device)
                    draw_from(self.accelerator.device, self.context.seed, self.context.name, number, *place)
                    loss = self.loss(batch)
                    mean = loss.over(whole_counts).to(self.accelerator.device)
                    if mean.requires_grad:  # a batch that counts nothing teaches nothing
                        self.accelerator.backward(mean * scale if self.sharded else mean)
                    losses.append((batch, mean.detach()))
                    own = self.material.source(number, micro)
                    sums = [loss.sums[name] if of == own else torch.zeros_like(mean) for of, name in counts]
                    totals += torch.stack([one.detach().double() for one in (mean, *sums)])
                    slots += 0 if loss.slots is None else loss.slots
            self._keep_up(number, spare, len(losses), whole_counts)
        except Exception as error:
            if not out_of_memory(error):
                raise
            if self.sharded:
                raise too_large(f"step '{self.context.name}', update {number}") from None
            return None
        self.slots = slots
        return losses, totals

    def _keep_up(self, number: int, spare: tuple[int, Batch], made: int, counts: Mapping[str, float]) -> None:
        """As many passes as the other processes make, through the same layers: losses that count nothing in the update
        are left out here too. Only a sharded model needs them."""
        if not self.sharded:
            return
        halved = self.cursor.halved
        for _ in range(made, self.material.passes(number, halved, self.accelerator.num_processes)):
            _, batch = next(self.material.pieces(number, *spare, halved))
            mean = self.loss(batch.to(self.accelerator.device)).over(counts)
            if mean.requires_grad:
                self.accelerator.backward(mean * 0)

    def _halve(self, number: int, micros: Micros, failed: bool) -> None:
        """Make ready for another attempt with smaller micro-batches. Raises RunError when there is nothing left to
        cut."""
        for parameter in self.learning.values():
            parameter.grad = None
        clear_device_cache(garbage_collection=True)
        where = f"step '{self.context.name}', update {number}: out of memory"
        halved = self.cursor.halved
        smaller = [self.material.cut(number, micro, halved + 1) for micro, _ in micros]
        pieces = [self.material.cut(number, micro, halved) for micro, _ in micros]
        if failed and [*map(len, smaller)] == [*map(len, pieces)]:
            raise RunError(
                f"{where} with a single pair (example '{pieces[0][0][0][0].id}'); {ADVICE_SMALLER}; the last "
                "checkpoint is kept"
            )
        self.cursor.halved += 1
        self.context.progress.say(
            f"{where}; from here on micro-batches are cut into {2**self.cursor.halved}, for the same optimiser update"
        )


def _by_name(cells: Mapping[Cell, float]) -> dict[str, float]:
    """Numbers of every source by itself, added up."""
    found: dict[str, float] = {}
    for (_, name), number in cells.items():
        found[name] = found.get(name, 0) + number
    return found
