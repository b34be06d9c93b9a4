"""The objective of text assignment: a caption belongs to the first of two pictures, to the second, or to neither."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmgen.errors import MissingInput
from mmgen.examples import All, Example
from mmgen.objectives import Objective, Rows, Sequencer, TargetReader
from mmgen.parts import Backbone
from mmgen.tensors import Batch, Loss, Targets

from .two_rows import joined, pair_head, row_per_picture

if TYPE_CHECKING:
    from .config import TextAssignment

BELONGS = "belongs"  # label of a row: 0 and 1 are the pictures, 2 is neither
CLASSES = 3


class Assignments(TargetReader):
    """Draws a caption of every example and two pictures, in loader workers."""

    def __init__(self, config: TextAssignment) -> None:
        self.pictures, self.caption, self.by_row = config.pictures, config.caption, config.arrangement == "rows"

    def rows(self, example: Example, draw: random.Random, draw_other: Callable[[], Example]) -> Sequence[Example]:
        belongs = draw.randrange(CLASSES)
        pictures = [self._draw_picture(draw_other(), draw), self._draw_picture(draw_other(), draw)]
        if belongs < len(pictures):
            pictures[belongs] = self._draw_picture(example, draw)
        captions = example.inputs.get(self.caption, ())
        if not captions:
            raise MissingInput(
                f"example '{example.id}' has no {self.caption}; this objective assigns captions to pictures",
                self.caption,
            )
        caption = captions if isinstance(captions, str) else draw.choice(captions)
        inputs = {**example.inputs, self.caption: caption, self.pictures: All(tuple(pictures))}
        row = replace(example, inputs=inputs, labels={**example.labels, BELONGS: belongs})
        return row_per_picture(row, self.pictures) if self.by_row else [row]

    def collate(self, rows: Rows) -> Targets:
        examples = rows.examples[::2] if self.by_row else rows.examples
        belongs = torch.tensor([row.labels[BELONGS] for row in examples])
        return Targets({"loss": len(belongs)}, {BELONGS: belongs})

    def _draw_picture(self, example: Example, draw: random.Random) -> object:
        """The example's picture, one of several if it has several."""
        picture = example.inputs.get(self.pictures)
        if not picture:
            raise MissingInput(
                f"example '{example.id}' has no {self.pictures}; this objective assigns captions to pictures",
                self.pictures,
            )
        pictures = picture.values if isinstance(picture, All) else picture
        return draw.choice(pictures) if isinstance(pictures, tuple) else pictures


class TextAssignmentObjective(Objective):
    """Owns the head: (B, H) pooled states of rows with two pictures, or (2B, H) of rows with one, -> (B, 3) logits."""

    def __init__(self, config: TextAssignment, backbone: Backbone) -> None:
        super().__init__()
        self.by_row = config.arrangement == "rows"
        self.reader = Assignments(config)
        self.head: nn.Module = (
            pair_head(backbone.hidden_size, CLASSES) if self.by_row else nn.Linear(backbone.hidden_size, CLASSES)
        )

    def logits(self, model: Sequencer, batch: Batch) -> Tensor:
        """(B, 3) float32: the caption belongs to the left picture, to the right one, or to neither."""
        pooled = model.backbone.pooled(model.encode(batch).states)
        return self.head(joined(pooled) if self.by_row else pooled).float()

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        return Loss({"loss": F.cross_entropy(self.logits(model, batch), targets.labels[BELONGS], reduction="sum")})
