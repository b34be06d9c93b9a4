"""Heads on the pooled state about texts and pictures: is a statement true, does a caption fit, and which picture."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from mmgen_vision.heads import published_layer
from mmgen_vision.truths import LABELS
from torch import Tensor, nn

from mmgen.errors import DataError
from mmgen.examples import All, Example, Prediction
from mmgen.objectives import Rows, Sequencer, TargetReader
from mmgen.parts import Backbone
from mmgen.tensors import Batch, Targets

from . import SentenceImage, TextAssignment, TrueOrFalse
from .heads import CLASSES, Head, label_of, label_predictions

Draw = Callable[[], Example]


class Truths(TargetReader):
    """The class of every example, in loader workers; with arrangement = "rows" an example has a row for each of its two
    pictures. `label`: the name of the class among the labels of a row."""

    label = "truth"

    def __init__(self, pictures: str = "", arrangement: str = "row") -> None:
        self.pictures, self.by_row = pictures, arrangement == "rows"

    @property
    def makes_rows(self) -> bool:
        return self.by_row

    def rows(self, example: Example, draw: random.Random, draw_other: Draw) -> Sequence[Example]:
        if not self.by_row:
            return [example]
        pictures = example.inputs.get(self.pictures)
        if not isinstance(pictures, All) or len(pictures.values) != 2:
            raise DataError(
                f"example '{example.id}': arrangement = \"rows\" needs two pictures in '{self.pictures}'; give two, or "
                'set arrangement = "row"'
            )
        return [replace(example, inputs={**example.inputs, self.pictures: picture}) for picture in pictures.values]

    def collate(self, rows: Rows) -> Targets:
        classes = torch.tensor([int(label_of(row, self.label)) for row in rows.examples[:: 1 + self.by_row]])
        return Targets({"loss": len(classes)}, {CLASSES: classes})


class Drawn(Truths):
    """Rows whose class is drawn, in loader workers."""

    label = "drawn"

    @property
    def makes_rows(self) -> bool:
        return True

    def values(self, example: Example, field: str) -> tuple[Any, ...]:
        """The alternatives of a field. Raises DataError."""
        value = example.inputs.get(field)
        if not value:
            raise DataError(f"example '{example.id}' has no {field}, which this objective compares")
        alternatives = value.values if isinstance(value, All) else value
        return alternatives if isinstance(alternatives, tuple) else (alternatives,)

    def pick(self, draw: random.Random, example: Example, field: str) -> Any:
        """One of the alternatives."""
        values = self.values(example, field)
        return draw.choice(values) if len(values) > 1 else values[0]

    def drawn(self, example: Example, inputs: Mapping[str, Any], class_: int) -> Example:
        """The example with these inputs and this class."""
        return replace(example, inputs={**example.inputs, **inputs}, labels={**example.labels, self.label: class_})


class Assignments(Drawn):
    """Draws a caption of every example and two pictures: 0 and 1 are the picture that it belongs to, 2 is neither."""

    def __init__(self, config: TextAssignment) -> None:
        super().__init__(config.pictures, config.arrangement)
        self.caption = config.caption

    def rows(self, example: Example, draw: random.Random, draw_other: Draw) -> Sequence[Example]:
        belongs = draw.randrange(3)
        pictures = [self.pick(draw, draw_other(), self.pictures) for _ in range(2)]
        if belongs < 2:
            pictures[belongs] = self.pick(draw, example, self.pictures)
        inputs = {self.caption: self.pick(draw, example, self.caption), self.pictures: All(tuple(pictures))}
        return super().rows(self.drawn(example, inputs, belongs), draw, draw_other)


class TwoCaptions(Drawn):
    """Draws a pair of captions for every row: 1 if the second belongs to the picture too, as in VisualBERT's code."""

    def __init__(self, config: SentenceImage) -> None:
        super().__init__()
        self.caption, self.second = config.caption, config.second

    def rows(self, example: Example, draw: random.Random, draw_other: Draw) -> Sequence[Example]:
        captions = self.values(example, self.caption)
        index = draw.randrange(len(captions))
        fits = draw.random() >= 0.5
        # a picture with one caption repeats its caption
        rest = captions[:index] + captions[index + 1 :] or captions
        candidates = rest if fits else self.values(draw_other(), self.caption)
        return [self.drawn(example, {self.caption: captions[index], self.second: draw.choice(candidates)}, int(fits))]


class PairHead(Head):
    """A head over the pooled state of a row; with arrangement = "rows" (2B, H) -> (B, outputs) over both states of an
    example, with a hidden layer as in LXMERT's and MMF's heads for NLVR2."""

    def __init__(self, config: TrueOrFalse | TextAssignment, backbone: Backbone, reader: Truths, outputs: int) -> None:
        wide = backbone.hidden_size * (1 + reader.by_row)
        hidden = [nn.Linear(wide, wide), nn.GELU(), nn.LayerNorm(wide)] if reader.by_row else []
        last = nn.Linear(wide, outputs)
        super().__init__(config, reader, nn.Sequential(*hidden, last) if hidden else last)
        self.by_row = reader.by_row

    def states(self, model: Sequencer, batch: Batch) -> Tensor:
        pooled = super().states(model, batch)
        return pooled.reshape(len(pooled) // 2, -1) if self.by_row else pooled


class TrueOrFalseObjective(PairHead):
    """Two logits, of false and true."""

    def __init__(self, config: TrueOrFalse, backbone: Backbone) -> None:
        super().__init__(config, backbone, Truths(config.pictures, config.arrangement), 2)

    def predict(self, model: Sequencer, batch: Batch, targets: Targets) -> list[Prediction]:
        return label_predictions(batch, self.logits(model, batch).softmax(-1), LABELS)


class TextAssignmentObjective(PairHead):
    """Three logits: the caption belongs to the left picture, to the right one, or to neither."""

    def __init__(self, config: TextAssignment, backbone: Backbone) -> None:
        super().__init__(config, backbone, Assignments(config), 3)


class SentenceImageObjective(Head):
    """Two logits; the second says that the second caption fits."""

    def __init__(self, config: SentenceImage, backbone: Backbone) -> None:
        super().__init__(config, TwoCaptions(config), nn.Linear(backbone.hidden_size, 2))

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """VisualBERT's head. BERT's next-sentence head has the same name and is not loaded."""
        if not any("visual" in name for name in weights):
            return {}
        return published_layer(weights, "cls.seq_relationship", "head")
