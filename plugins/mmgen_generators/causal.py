"""The causal generator: a target y_1..y_T is laid out as [SEP], y_1..y_(T-1); each slot predicts the next token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from mmgen.objectives import Sequencer
from mmgen.parts import Backbone
from mmgen.prompts import Prompts
from mmgen.sequence import Prefix
from mmgen.tensors import PAD, WRITTEN, Batch, Slot, Tail, apply, taken

from . import Causal
from .causal_writing import CausalStepper
from .stepwise import StepwiseGenerator, StepwiseTargets


class CausalTargets(StepwiseTargets):
    """Lays out targets, in loader workers."""

    def __init__(self, config: Causal, backbone: Backbone) -> None:
        super().__init__(backbone, config.max_tokens)

    def target_slots(self, target: Sequence[int], group: int) -> list[Slot]:
        inputs = [self.end_id, *target[:-1]]
        return [
            (y, t - 1, WRITTEN, group, t, label) for t, (y, label) in enumerate(zip(inputs, target, strict=True), 1)
        ]


class CausalGenerator(StepwiseGenerator):
    """Trains on targets and generates texts."""

    needs = "causal"
    reader: CausalTargets

    def __init__(self, config: Causal, backbone: Backbone) -> None:
        super().__init__()
        self.reader = CausalTargets(config, backbone)

    def predicting_states(self, model: Sequencer, batch: Batch, tail: Tail) -> tuple[Tensor, Tensor]:
        prefix = self.prefix(model, batch)
        if model.backbone.masks != "any":
            prefix, tail = one_row_per_target(prefix, tail, self.reader.pad_id)
        rows = prefix.slots.followed_by(model.behind(prefix, tail))
        states = model.backbone.encode(rows).last[:, prefix.slots.positions.shape[1] :]
        predicted = tail.labels != -100
        return states[predicted], tail.labels[predicted]

    def prefix(self, model: Sequencer, batch: Batch) -> Prefix:
        """The prefix that training reads; a subclass may shorten it."""
        return model.prefix(batch)

    def stepper(self, model: Sequencer, prefix: Prefix, prompts: Prompts | None) -> CausalStepper:
        return CausalStepper(model, prefix, model.backbone.end_id, prompts)


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
