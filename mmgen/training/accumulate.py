"""The gradient of an update: losses and their counts over micro-batches and processes; micro-batches halved if too big.

Counts come with the batches. They are summed over micro-batches and processes before the first forward pass, and each
backward pass starts from its summed losses divided by the update's counts. So the gradients are those of the means over
the full update, however it is split; each loss has its own count. Dropout is drawn for every micro-batch from (seed,
step, update, micro-batch), so neither a resume nor another number of processes changes it.

An update that runs out of memory is repeated with every micro-batch cut in two, in all processes. A half draws its
dropout from (seed, step, update, micro-batch, half), so the gradient is that of the same loss with other dropout;
without dropout the gradient is the same. The rest of the step uses the smaller micro-batches; the log (`halved`) and
the checkpoint record it. An update whose loss compares all its rows (`ObjectiveConfig.over_batch`) has one micro-batch,
which is never cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from accelerate.utils.memory import clear_device_cache
from torch import Tensor, nn

from ..data.plan import Plan
from ..data.seeds import draw_from
from ..data.sources import DataStream
from ..errors import RunError
from ..oom import ADVICE_SMALLER, halves, out_of_memory
from ..tensors import Batch, Example, Loss
from .checkpoint import Cursor
from .context import StepContext
from .distributed import all_reduce_sum, any_rank

Micros = Sequence[tuple[int, int, Batch]]  # micro-batches of one process: number in the update, source, batch
Cell = tuple[int, str]  # (number of a source, name of one of its losses)
Piece = tuple[tuple[int, ...], Batch]  # (place in the update, batch)
Losses = list[tuple[Batch, Tensor]]  # batches of this process, each with its share of the loss


@dataclass(frozen=True)
class Means:
    """The losses of an update, over all processes."""

    loss: float  # the training loss: the weighted sum of the means
    by_loss: dict[str, float]  # loss -> its mean; only losses that counted anything
    by_source: dict[str, dict[str, float]]  # source -> loss -> its mean


@dataclass(frozen=True)
class Material:
    """The training data of a step.

    plan              which of the streams' examples an update takes
    micro_batch_size  in pairs
    over_batch        the objective whose loss compares all rows of an update, if there is one
    """

    plan: Plan
    streams: Sequence[DataStream]
    micro_batch_size: int
    over_batch: str = ""

    @property
    def cells(self) -> list[Cell]:
        """All losses of all sources."""
        return [(number, name) for number, stream in enumerate(self.streams) for name in stream.collate.losses]

    @property
    def losses(self) -> tuple[str, ...]:
        """Names of all losses."""
        return tuple(dict.fromkeys(name for _, name in self.cells))

    def cut(self, number: int, micro: int, times: int) -> list[list[tuple[Example, int]]]:
        """The examples of an update's micro-batch, each with its epoch, halved `times` times. A single example is split
        by its questions; a single pair is not split."""
        batch = self.plan.update(number, self.micro_batch_size)[micro]
        stream = self.streams[batch.source]
        rows = zip(batch.indices.tolist(), batch.passes.tolist(), strict=True)
        pieces = [[(stream.source.examples[index], epoch) for index, epoch in rows]]
        for _ in range(times):
            pieces = [half for piece in pieces for half in halves(piece, partial(_cut_in_two, stream))]
        return pieces

    def pieces(self, number: int, micro: int, source: int, full_batch: Batch, times: int) -> Iterator[Piece]:
        """A micro-batch, or the pieces that it is cut into."""
        if not times:
            yield (micro,), full_batch
            return
        for piece, pairs in enumerate(self.cut(number, micro, times)):
            examples, epochs = zip(*pairs, strict=True)
            yield (micro, piece, times), self.streams[source].collate(examples, epochs)


def _cut_in_two(stream: DataStream, pair: tuple[Example, int]) -> list[tuple[Example, int]]:
    """A single example, with its epoch, cut in two, or as one if the example cannot be cut."""
    return [(half, pair[1]) for half in stream.collate.halves(pair[0])]


class Accumulator:
    """Adds up the gradients of a step's updates.

    loss      the losses of a batch on this process's device
    learning  the trainable parameters, by name
    slots     (2,) real slots of the rows so far, and slots encoded with padding; 0 for generators that do not count
              them
    """

    def __init__(
        self,
        context: StepContext,
        material: Material,
        cursor: Cursor,
        loss: Callable[[Batch], Loss],
        learning: Mapping[str, nn.Parameter],
    ) -> None:
        self.context, self.material, self.cursor = context, material, cursor
        self.loss, self.learning, self.accelerator = loss, learning, context.accelerator
        self.slots = torch.zeros(2, dtype=torch.int64, device=self.accelerator.device)

    def gradients(self, number: int, micros: Micros, stop: Callable[[], bool]) -> tuple[Losses, Means, bool]:
        """Compute the gradients of an update's loss over all processes, in `parameter.grad`. Returns this process's
        losses, the means over all processes, and whether `stop()` was true in any process. Raises RunError if the
        smallest micro-batch does not fit into memory."""
        counts = self._counts_of_update(micros)
        while True:
            result = self._backward_pass(number, micros, counts)
            mine = [parameter.grad is not None for parameter in self.learning.values()]
            stopping, again, *anywhere = any_rank(self.accelerator, [stop(), result is None, *mine])
            if result is not None and not again:
                break
            self._halve_micro_batches(number, micros, failed=result is None)
        losses, totals = result
        reached = [parameter for parameter, has in zip(self.learning.values(), anywhere, strict=True) if has]
        gradients = []
        for parameter in reached:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            gradients.append(parameter.grad)
        all_reduce_sum(self.accelerator, [totals, *gradients])
        return losses, self._divide_by_counts(totals.tolist(), counts), stopping

    def _divide_by_counts(self, totals: Sequence[float], counts: Mapping[Cell, float]) -> Means:
        """The sums of `_backward_pass` divided by the counts."""
        loss, *sums = totals
        counts_by_loss, sums_by_cell = _by_name(counts), dict(zip(counts, sums, strict=True))
        by_source: dict[str, dict[str, float]] = {}
        for (number, name), total in sums_by_cell.items():
            of_source = by_source.setdefault(self.material.streams[number].source.name, {})
            of_source[name] = total / counts[number, name]
        return Means(
            loss, {name: total / counts_by_loss[name] for name, total in _by_name(sums_by_cell).items()}, by_source
        )

    def _counts_of_update(self, micros: Micros) -> dict[Cell, float]:
        """The counts that an update's summed losses are divided by, over all processes; zero counts are left out."""
        names = self.material.cells
        sources = [(source, batch.counts) for _, source, batch in micros]
        local_counts = [sum(counts.get(name, 0) for source, counts in sources if source == of) for of, name in names]
        if self.accelerator.num_processes > 1:
            together = torch.tensor(local_counts, dtype=torch.float64, device=self.accelerator.device)
            all_reduce_sum(self.accelerator, [together])
            local_counts = together.tolist()
        return {name: count for name, count in zip(names, local_counts, strict=True) if count}

    def _backward_pass(self, number: int, micros: Micros, counts: Mapping[Cell, float]) -> tuple[Losses, Tensor] | None:
        """The losses of this process's micro-batches, and their sums in float64: the training loss, then every cell of
        `counts`. None if memory runs out."""
        losses: Losses = []
        totals = torch.zeros(1 + len(counts), dtype=torch.float64, device=self.accelerator.device)
        slots, whole_counts = self.slots.clone(), _by_name(counts)
        try:
            for micro, source, full_batch in micros:
                for batch in self._pieces_on_device(number, micro, source, full_batch):
                    loss = self.loss(batch)
                    mean = loss.over(whole_counts).to(self.accelerator.device)
                    if mean.requires_grad:  # a batch without any count has no gradient
                        mean.backward()
                    losses.append((batch, mean.detach()))
                    zero = torch.zeros_like(mean)
                    sums = [loss.sums.get(name, zero) if of == source else zero for of, name in counts]
                    totals += torch.stack([value.detach().double() for value in (mean, *sums)])
                    slots += 0 if loss.slots is None else loss.slots
        except Exception as error:
            if not out_of_memory(error):
                raise
            return None
        self.slots = slots
        return losses, totals

    def _pieces_on_device(self, number: int, micro: int, source: int, full_batch: Batch) -> Iterator[Batch]:
        """A micro-batch or its pieces on this process's device. Random draws are those of the piece."""
        for place, batch in self.material.pieces(number, micro, source, full_batch, self.cursor.halved):
            draw_from(self.accelerator.device, self.context.seed, self.context.name, number, *place)
            yield batch.to(self.accelerator.device)

    def _halve_micro_batches(self, number: int, micros: Micros, failed: bool) -> None:
        """Prepare another attempt with smaller micro-batches. Raises RunError if they cannot be smaller."""
        for parameter in self.learning.values():
            parameter.grad = None
        clear_device_cache(garbage_collection=True)
        where = f"step '{self.context.name}', update {number}: out of memory"
        if self.material.over_batch:
            raise RunError(
                f"{where}; '{self.material.over_batch}' compares all pairs of an update, which is not split; lower "
                "training.batch_size"
            )
        halved = self.cursor.halved
        smaller = [self.material.cut(number, micro, halved + 1) for micro, *_ in micros]
        pieces = [self.material.cut(number, micro, halved) for micro, *_ in micros]
        if failed and [*map(len, smaller)] == [*map(len, pieces)]:
            raise RunError(
                f"{where} with a single pair (example '{pieces[0][0][0][0].id}'); {ADVICE_SMALLER}; the last "
                "checkpoint is kept"
            )
        self.cursor.halved += 1
        self.context.progress.say(
            f"{where}; from now on micro-batches are split into {2**self.cursor.halved}; updates stay the same"
        )


def _by_name(cells: Mapping[Cell, float]) -> dict[str, float]:
    """Metrics per source and loss, summed by loss."""
    totals: dict[str, float] = {}
    for (_, name), number in cells.items():
        totals[name] = totals.get(name, 0) + number
    return totals
