"""Masked regions: a head predicts what a detector took hidden regions for (VL-BERT, section 3.3)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import cast

import torch.nn.functional as F
from mmgen_vl.heads import VLBERT_REGIONS, region_layers
from torch import Tensor, nn

from mmgen.errors import DataError
from mmgen.objectives import Objective, Rows, Sequencer, TargetReader, published_layer
from mmgen.parts import Backbone, Reader
from mmgen.tensors import Batch, Hiding, Loss, Targets

from . import MaskedRegions


class HiddenRegions(TargetReader):
    """Counts hidden regions, in loader workers."""

    def __init__(self, config: MaskedRegions) -> None:
        self.input, self.hiding = config.input, Hiding(config.rate, (config.mask, 0.0))

    def hides(self, readers: Mapping[str, Reader]) -> Mapping[str, Hiding]:
        reader = readers.get(self.input)
        return {self.input: self.hiding} if reader is not None and reader.hides == "regions" else {}

    def collate(self, rows: Rows) -> Targets:
        """Which slots are predicted, (B, N), and their distributions, (n, C), row by row."""
        labels = rows.hidden[self.input]
        asked = labels[..., 0] != -100
        return Targets({"loss": int(asked.sum())}, {"asked": asked, "classes": labels[asked]})


class MaskedRegionsObjective(Objective):
    """A dense layer and GELU, then a logit a class, of a region's last state. Without its input in the model it has no
    head."""

    def __init__(self, config: MaskedRegions, backbone: Backbone, classes: tuple[str, ...] | None) -> None:
        super().__init__()
        self.reader, self.input = HiddenRegions(config), config.input
        self.head: nn.Sequential | None = None
        if classes is None:
            return
        if not classes:
            raise DataError(
                f"masked_regions predicts classes of regions, and the features of '{config.input}' tell none; delete "
                "the store and make it anew with a detector, or import published features with names of classes "
                "(labels)"
            )
        dense, logits = region_layers(backbone.hidden_size, len(classes))
        self.head = nn.Sequential(OrderedDict(dense=dense, activation=nn.GELU(), classes=logits))

    def hidden_layer(self) -> nn.Linear | None:
        return None if self.head is None else cast(nn.Linear, self.head[0])

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """VL-BERT's head. Its first class is the background, which is left out where there is one more than here."""
        found: dict[str, Tensor] = {}
        if self.head is None:
            return found
        for own, theirs in VLBERT_REGIONS.items():
            found |= published_layer(weights, theirs, f"head.{own}")
        logits = {f"head.classes.{name}": len(each) + 1 for name, each in self.head[-1].named_parameters()}
        if all(name in found and found[name].ndim and len(found[name]) == more for name, more in logits.items()):
            found |= {name: found[name][1:] for name in logits}
        return found

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        assert self.head is not None  # the step reads the input
        states = model.encode(batch).inputs[self.input][targets.labels["asked"]]  # (n, H)
        told = F.log_softmax(self.head(states).float(), -1)
        return Loss({"loss": -(targets.labels["classes"] * told).sum()})
