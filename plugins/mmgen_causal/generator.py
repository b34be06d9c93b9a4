"""The causal generator: a target y_1..y_T is laid out as [SEP], y_1..y_(T-1); each slot predicts the next token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F

from mmgen import Decoding
from mmgen.objectives import Generator, Sequencer, TextTargets
from mmgen.parts import Backbone
from mmgen.search import Limits, as_generations, search
from mmgen.sequence import Prompts
from mmgen.tensors import PAD, WRITTEN, Batch, Generation, Layout, Loss, Tail, Targets

from . import Causal
from .writing import CausalStepper


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

    def __init__(self, config: Causal, backbone: Backbone) -> None:
        super().__init__()
        self.reader = CausalTargets(config, backbone)

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        assert targets.tail is not None  # laid out by the reader
        prefix = model.prefix(batch)
        total = prefix.slots.states.new_zeros((), dtype=torch.float32)
        slots = torch.zeros(2, dtype=torch.int64, device=total.device)
        for tail in split_targets(targets.tail, model.backbone.masks):
            rows = prefix.slots.followed_by(model.behind(prefix, tail))
            slots += rows.counts
            states = model.backbone.encode(rows).last
            predicted = tail.labels != -100
            logits = model.backbone.logits(states[:, prefix.slots.positions.shape[1] :][predicted]).float()
            total = total + F.cross_entropy(logits, tail.labels[predicted], reduction="sum")
        return Loss({"loss": total}, slots)

    def generate(self, model: Sequencer, batch: Batch, options: Decoding) -> list[list[Generation]]:
        prompts = Prompts.of(batch)
        stepper = CausalStepper(model, model.prefix(batch), model.backbone.end_id, prompts)
        hypotheses = search(stepper, stepper.begin, options, Limits.of(model.backbone, self.max_tokens))
        return as_generations(hypotheses, batch.ids, model.backbone, prompts)


def split_targets(tail: Tail, masks: str) -> Iterator[Tail]:
    """Split targets into forward passes. A backbone that obeys any mask encodes all targets in one pass. A
    left-to-right backbone would see the first target while it reads the second, so every target has a separate pass, in
    which the other targets are padding."""
    if masks == "any":
        yield tail
        return
    for group in range(1, int(tail.layout.group.max()) + 1):
        in_group = tail.layout.group == group
        yield replace(
            tail,
            layout=replace(tail.layout, role=torch.where(in_group, tail.layout.role, PAD)),
            labels=torch.where(in_group, tail.labels, -100),
        )
