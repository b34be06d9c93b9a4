"""The causal generator: a target y_1..y_T is laid out as [SEP], y_1..y_(T-1); each slot predicts the next token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F

from mmgen import Decoding
from mmgen.examples import Generation
from mmgen.objectives import Generator, Sequencer, TextTargets
from mmgen.parts import Backbone
from mmgen.prompts import Prompts
from mmgen.search import as_generations, search
from mmgen.sequence import Prefix
from mmgen.tensors import PAD, WRITTEN, Batch, Layout, Loss, Tail, Targets, apply, taken

from . import Causal
from .causal_writing import CausalStepper


class CausalTargets(TextTargets):
    """Lays out targets, in loader workers."""

    reads_prompts = True

    def __init__(self, config: Causal, backbone: Backbone) -> None:
        super().__init__(backbone, config.max_tokens)
        self.begin_id = backbone.end_id

    def lay_out(self, targets: Sequence[Sequence[Sequence[int]]]) -> Tail:
        rows = [[slot for k, y in enumerate(questions, 1) for slot in self._slots(y, k)] for questions in targets]
        longest, padding = max(map(len, rows)), (self.pad_id, 0, PAD, 0, 0, -100)
        table = torch.tensor([row + [padding] * (longest - len(row)) for row in rows])  # (B, S, 6)
        ids, offsets, role, group, time, target_ids = table.unbind(-1)
        return Tail(ids, offsets, Layout(role, group, time), target_ids)

    def _slots(self, target: Sequence[int], group: int) -> list[tuple[int, ...]]:
        """The T slots of one target, as tuples (id, offset, role, group, time, label)."""
        inputs = [self.begin_id, *target[:-1]]
        return [
            (y, t - 1, WRITTEN, group, t, label) for t, (y, label) in enumerate(zip(inputs, target, strict=True), 1)
        ]


class CausalGenerator(Generator):
    """Trains on targets and generates texts; has no parameters."""

    needs = "causal"
    reader: CausalTargets

    def __init__(self, config: Causal, backbone: Backbone) -> None:
        super().__init__()
        self.reader = CausalTargets(config, backbone)

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        assert targets.tail is not None  # laid out by the reader
        prefix, tail = self.prefix(model, batch), targets.tail
        if model.backbone.masks != "any":
            prefix, tail = one_row_per_target(prefix, tail, self.reader.pad_id)
        rows = prefix.slots.followed_by(model.behind(prefix, tail))
        states = model.backbone.encode(rows).last[:, prefix.slots.positions.shape[1] :]
        predicted = tail.labels != -100
        logits = model.backbone.logits(states[predicted]).float()
        return Loss({"loss": F.cross_entropy(logits, tail.labels[predicted], reduction="sum")})

    def prefix(self, model: Sequencer, batch: Batch) -> Prefix:
        """The prefix that training reads; a subclass may shorten it."""
        return model.prefix(batch)

    def generate(self, model: Sequencer, batch: Batch, options: Decoding) -> list[list[Generation]]:
        prompts = Prompts.of(batch)
        stepper = CausalStepper(model, model.prefix(batch), model.backbone.end_id, prompts)
        hypotheses = search(stepper, stepper.begin, options, model.backbone, self.max_tokens)
        return as_generations(hypotheses, batch.ids, model.backbone, prompts)


def one_row_per_target(prefix: Prefix, tail: Tail, pad_id: int) -> tuple[Prefix, Tail]:
    """The rows of B examples, one for each target, in order. A backbone that obeys any mask encodes all targets of an
    example in one row; a left-to-right backbone would read the first target before the second."""
    counts = tail.layout.group.max(1).values  # (B,) targets of each example
    rows = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)  # (N,)
    first = (counts.cumsum(0) - counts)[rows]
    number = torch.arange(len(rows), device=counts.device) - first + 1  # (N,) of the target in its example
    inside = (tail.layout.group[rows] == number.unsqueeze(1)) & tail.layout.real[rows]  # (N, S)
    order = (~inside).long().argsort(dim=1, stable=True)[:, : int(inside.sum(1).max())]
    mask, slots = taken(inside, order), apply(tail, lambda t: taken(t[rows], order))
    role = torch.where(mask, slots.layout.role, PAD)
    ids, labels = torch.where(mask, slots.ids, pad_id), torch.where(mask, slots.labels, -100)
    return prefix.select(rows), replace(slots, ids=ids, layout=replace(slots.layout, role=role), labels=labels)
