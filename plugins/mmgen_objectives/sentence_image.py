"""Sentence-image matching: rows with a second caption; a head on the pooled state says whether it fits the picture.

The label is 1 if the caption fits, as in the original code of VisualBERT."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmgen.errors import MissingInput
from mmgen.examples import Example
from mmgen.objectives import Objective, Rows, Sequencer, TargetReader, published_layer
from mmgen.parts import Backbone
from mmgen.tensors import Batch, Loss, Targets

from . import SentenceImage

FITS = "fits"  # the label of a row: whether its second caption belongs to the same picture


class TwoCaptions(TargetReader):
    """Draws a pair of captions for every row, in loader workers."""

    def __init__(self, config: SentenceImage) -> None:
        self.caption, self.second, self.other_share = config.caption, config.second, config.negative_ratio

    def rows(self, example: Example, draw: random.Random, draw_other: Callable[[], Example]) -> Sequence[Example]:
        captions = self._captions(example)
        index = draw.randrange(len(captions))
        fits = draw.random() >= self.other_share
        # a picture with one caption repeats its caption
        candidates = (captions[:index] + captions[index + 1 :] or captions) if fits else self._captions(draw_other())
        inputs = {**example.inputs, self.caption: captions[index], self.second: draw.choice(candidates)}
        return [replace(example, inputs=inputs, labels={**example.labels, FITS: fits})]

    def collate(self, rows: Rows) -> Targets:
        fits = torch.tensor([int(row.labels[FITS]) for row in rows.examples])
        return Targets({"loss": len(fits)}, {FITS: fits})

    def _captions(self, example: Example) -> tuple[str, ...]:
        value = example.inputs.get(self.caption, ())
        captions = (value,) if isinstance(value, str) else tuple(value)
        if not captions:
            raise MissingInput(
                f"example '{example.id}' has no {self.caption}; this objective needs captions to compare", self.caption
            )
        return captions


class SentenceImageObjective(Objective):
    """Binary classification with a linear head on the pooled state: (B, H) -> (B, 2)."""

    def __init__(self, config: SentenceImage, backbone: Backbone) -> None:
        super().__init__()
        self.reader = TwoCaptions(config)
        self.head = nn.Linear(backbone.hidden_size, 2)

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """VisualBERT's head. BERT's next-sentence head has the same name and is not loaded."""
        if not any("visual" in name for name in weights):
            return {}
        return published_layer(weights, "cls.seq_relationship", "head")

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        pooled = model.backbone.pooled(model.encode(batch).states)
        logits = self.head(pooled).float()
        return Loss({"loss": F.cross_entropy(logits, targets.labels[FITS], reduction="sum")})
