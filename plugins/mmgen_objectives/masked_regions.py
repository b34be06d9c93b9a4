"""Masked regions: a head predicts the detector's classes of hidden regions (VL-BERT, section 3.3)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import cast

import torch.nn.functional as F
from mmgen_vision.heads import VLBERT_REGIONS, published_layer, region_layers
from torch import Tensor, nn

from mmgen.errors import DataError
from mmgen.objectives import Objective, Rows, Sequencer, TargetReader
from mmgen.parts import Backbone, Reader
from mmgen.tensors import Batch, Hiding, Loss, Targets

from . import MaskedRegions


class HiddenRegions(TargetReader):
    """Collects the labels of hidden regions, in loader workers."""

    def __init__(self, config: MaskedRegions) -> None:
        self.input, self.hiding = config.input, Hiding(config.mask_probability, (config.mask_replace_prob, 0.0))

    def hides(self, readers: Mapping[str, Reader]) -> Mapping[str, Hiding]:
        reader = readers.get(self.input)
        return {self.input: self.hiding} if reader is not None and reader.hides == "regions" else {}

    def collate(self, rows: Rows) -> Targets:
        """Mask of predicted slots (B, N), and their class distributions (n, C), row by row."""
        labels = rows.hidden[self.input]
        predicted = labels[..., 0] != -100
        return Targets({"loss": int(predicted.sum())}, {"predicted": predicted, "classes": labels[predicted]})


class MaskedRegionsObjective(Objective):
    """Classifies a region's last state with a dense layer, GELU and a linear layer. Without its input in the model the
    objective has no head."""

    def __init__(self, config: MaskedRegions, backbone: Backbone, classes: tuple[str, ...] | None) -> None:
        super().__init__()
        self.reader, self.input = HiddenRegions(config), config.input
        self.head: nn.Sequential | None = None
        if classes is None:
            return
        if not classes:
            raise DataError(
                f"masked_regions predicts region classes, but the features of '{config.input}' have none; delete the "
                "store and extract features with a detector, or import published features with 'class_names'"
            )
        dense, logits = region_layers(backbone.hidden_size, len(classes))
        self.head = nn.Sequential(OrderedDict(dense=dense, activation=nn.GELU(), classes=logits))

    def hidden_layer(self) -> nn.Linear | None:
        return None if self.head is None else cast(nn.Linear, self.head[0])

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """VL-BERT's head. If it has one class more than this head, its first class, the background, is left out."""
        tensors: dict[str, Tensor] = {}
        if self.head is None:
            return tensors
        for layer, published_name in VLBERT_REGIONS.items():
            tensors |= published_layer(weights, published_name, f"head.{layer}")
        sizes = {f"head.classes.{name}": len(parameter) for name, parameter in self.head[-1].named_parameters()}
        if all(name in tensors and tensors[name].shape[:1] == (size + 1,) for name, size in sizes.items()):
            tensors |= {name: tensors[name][1:] for name in sizes}
        return tensors

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        assert self.head is not None  # the step reads the input
        states = model.encode(batch).inputs[self.input][targets.labels["predicted"]]  # (n, H)
        log_probabilities = F.log_softmax(self.head(states).float(), -1)
        return Loss({"loss": -(targets.labels["classes"] * log_probabilities).sum()})
