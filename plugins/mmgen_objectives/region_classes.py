"""What the objects of a picture are, told by their regions' last states: VL-BERT's second loss of VCR."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from mmgen_vl.heads import VLBERT_REGIONS, region_layers, region_states
from torch import Tensor, nn

from mmgen.errors import MissingLabel
from mmgen.objectives import Objective, Rows, Sequencer, TargetReader, begin_as, published_layer
from mmgen.parts import Backbone
from mmgen.tensors import Batch, Loss, Targets

if TYPE_CHECKING:
    from .auxiliary import RegionClasses

OBJECTS = "objects"  # the label of an example: what each of its objects is, in their order
BACKGROUND = 0


class ObjectRegions(TargetReader):
    """The class of every region of a row's first picture, in loader workers."""

    def __init__(self, config: RegionClasses, names: Sequence[str]) -> None:
        self.input, self.first = config.input, config.first_object
        self.known = {name: place for place, name in enumerate(names, 1)}

    def collate(self, rows: Rows) -> Targets:
        """classes (B, N): the first is the background; -100 at padded slots, at those of further pictures, and where
        the class is none that there is to choose from: it was not in the split to learn from."""
        collated = rows.inputs[self.input]
        mask = collated["mask"]
        whole = collated.get("whole", torch.zeros_like(mask))
        first = mask & (collated["picture"] == 0) if "picture" in collated else mask
        found = torch.full(mask.shape, -100).masked_fill(first, BACKGROUND)
        for row, own, example in zip(found, first & ~whole, rows.examples, strict=True):
            places = own.nonzero().squeeze(1)[self.first :]
            classes = self._classes(example.labels.get(OBJECTS), example.id)[: len(places)]
            row[places[: len(classes)]] = torch.tensor(classes, dtype=torch.long)
        return Targets({"loss": int((found != -100).sum())}, {"classes": found})

    def _classes(self, objects: object, where: str) -> list[int]:
        """-100 for what is none of the classes."""
        if not isinstance(objects, list | tuple):
            raise MissingLabel(f"example '{where}' has no label '{OBJECTS}'", OBJECTS)
        return [self.known.get(name, -100) for name in objects]


class RegionClassesObjective(Objective):
    """A dense layer and GELU, then a logit a class, of every region's last state; cross-entropy, a mean over regions.
    The whole picture, which is of the background, is one of them; what ends the regions is not."""

    def __init__(self, config: RegionClasses, backbone: Backbone, names: Sequence[str] | None) -> None:
        super().__init__()
        self.config, self.reader = config, ObjectRegions(config, names or ())
        dense, logits = region_layers(backbone.hidden_size, 1 + len(names or ()))
        layers = OrderedDict(dense=dense, activation=nn.GELU(), dropout=nn.Dropout(config.dropout), classes=logits)
        self.head = nn.Sequential(layers)

    def begin(self, model: Sequencer) -> None:
        begin_as(self.head[0], model, self.config.begins_as)

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The hidden layer begins as that of VL-BERT's head for masked regions."""
        return published_layer(weights, VLBERT_REGIONS["dense"], "head.dense")

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        classes = targets.labels["classes"]
        asked = classes != -100
        states = region_states(model, batch, self.config.input, asked.shape[1])[asked]  # (n, H)
        return Loss({"loss": F.cross_entropy(self.head(states).float(), classes[asked], reduction="sum")})
