"""Region classes: a head classifies a picture's objects from their regions' last states (VL-BERT's second VCR loss)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from mmgen_vision.heads import VLBERT_REGIONS, init_layer_from, published_layer, region_layers, region_states
from torch import Tensor, nn

from mmgen.errors import DataError
from mmgen.objectives import Objective, Rows, Sequencer, TargetReader
from mmgen.parts import Backbone
from mmgen.tensors import Batch, Loss, Targets

from . import RegionClasses

OBJECTS = "objects"  # the label of an example: the class names of its objects, in order
BACKGROUND = 0


class ObjectRegions(TargetReader):
    """Collects the class of every region of a row's first picture, in loader workers."""

    def __init__(self, config: RegionClasses, names: Sequence[str]) -> None:
        self.input = config.input
        self.class_ids = {name: place for place, name in enumerate(names, 1)}

    def collate(self, rows: Rows) -> Targets:
        """classes (B, N): 0 is the background; -100 at padded slots, at slots of further pictures, and at objects whose
        class is unknown because the training split does not have it."""
        collated = rows.inputs[self.input]
        mask = collated["mask"]
        whole_picture = collated.get("whole_picture", torch.zeros_like(mask))
        first = mask & (collated["picture"] == 0) if "picture" in collated else mask
        classes = torch.full(mask.shape, -100).masked_fill(first, BACKGROUND)
        for row, regions, example in zip(classes, first & ~whole_picture, rows.examples, strict=True):
            slots, objects = regions.nonzero().squeeze(1), example.labels.get(OBJECTS)
            if not isinstance(objects, list | tuple):
                raise DataError(f"example '{example.id}' has no label '{OBJECTS}'")
            class_ids = [self.class_ids.get(name, -100) for name in objects[: len(slots)]]
            row[slots[: len(class_ids)]] = torch.tensor(class_ids, dtype=torch.long)
        return Targets({"loss": int((classes != -100).sum())}, {"classes": classes})


class RegionClassesObjective(Objective):
    """Classifies every region's last state with a dense layer, GELU and a linear layer; the loss is the mean
    cross-entropy over regions. The whole picture counts as a region of the background; the end slot does not count."""

    def __init__(self, config: RegionClasses, backbone: Backbone, names: Sequence[str] | None) -> None:
        super().__init__()
        self.config, self.reader = config, ObjectRegions(config, names or ())
        dense, logits = region_layers(backbone.hidden_size, 1 + len(names or ()))
        layers = OrderedDict(dense=dense, activation=nn.GELU(), dropout=nn.Dropout(config.dropout), classes=logits)
        self.head = nn.Sequential(layers)

    def init_from_model(self, model: Sequencer) -> None:
        init_layer_from(self.head[0], model, self.config.init_from)

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The hidden layer of VL-BERT's masked-region head, to initialise this head's hidden layer."""
        return published_layer(weights, VLBERT_REGIONS["dense"], "head.dense")

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        classes = targets.labels["classes"]
        predicted = classes != -100
        states = region_states(model, batch, self.config.input, predicted.shape[1])[predicted]  # (n, H)
        return Loss({"loss": F.cross_entropy(self.head(states).float(), classes[predicted], reduction="sum")})
