"""The objective of referring expressions: a choice among regions, one logit per region from its last state."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from mmgen_vision.heads import VLBERT_REGIONS, init_layer_from, published_layer, region_states
from mmgen_vision.regions import choosable, plain, regions_of, right
from torch import Tensor, nn

from mmgen.examples import Prediction
from mmgen.objectives import Objective, Rows, Sequencer, TargetReader
from mmgen.parts import Backbone
from mmgen.tensors import Batch, Loss, Targets

from . import RegionChoice
from .heads import label_of

BOX, RIGHT = "box", "right"


class RightRegions(TargetReader):
    """Computes which regions of every row are right, in loader workers."""

    def __init__(self, config: RegionChoice) -> None:
        self.image, self.whole_image, self.by_region = config.image, config.whole_image, config.loss == "bce"

    def collate(self, rows: Rows) -> Targets:
        boxes, mask = regions_of(rows, self.image), choosable(rows.inputs[self.image], self.whole_image)
        labels = torch.full(mask.shape, -100)  # (B, N)
        for row, row_boxes, real, example in zip(labels, boxes, mask, rows.examples, strict=True):
            row[real] = right(row_boxes[real], label_of(example, BOX), example.id).long()
        if (pictures := rows.inputs[self.image].get("picture")) is not None:
            labels[mask & (pictures > 0)] = 0  # a label's box is on the first picture
        count = int(mask.sum()) if self.by_region else int((labels == 1).any(1).sum())
        return Targets({"loss": count}, {RIGHT: labels})

    def ask(self, rows: Rows) -> Targets:
        regions_of(rows, self.image)
        return Targets({})


class RegionChoiceObjective(Objective):
    """Owns the head: (B, N, H) states of regions -> (B, N) logits, -inf for those that cannot be chosen.

    Losses: binary cross-entropy over regions (VL-BERT); or, per example, the cross-entropy with a uniform distribution
    over the right regions. An example without a right region has no softmax loss.
    """

    def __init__(self, config: RegionChoice, backbone: Backbone) -> None:
        width = backbone.hidden_size
        hidden = [nn.Linear(width, width), nn.GELU()] if config.transform else []
        super().__init__()
        self.config, self.reader = config, RightRegions(config)
        self.head = nn.Sequential(*hidden, nn.Dropout(config.dropout), nn.Linear(width, 1))

    def init_from_model(self, model: Sequencer) -> None:
        if self.config.transform:
            init_layer_from(self.head[0], model, self.config.init_from)

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Weights for the hidden layer: those of VL-BERT's head for masked regions."""
        return published_layer(weights, VLBERT_REGIONS["dense"], "head.0") if self.config.transform else {}

    def logits(self, model: Sequencer, batch: Batch) -> Tensor:
        mask = choosable(batch.inputs[self.config.image], self.config.whole_image)
        states = region_states(model, batch, self.config.image, mask.shape[1])
        return self.head(states).float().squeeze(-1).masked_fill(~mask, float("-inf"))

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        logits, labels = self.logits(model, batch), targets.labels[RIGHT]
        if self.config.loss == "bce":
            real = labels != -100
            loss = F.binary_cross_entropy_with_logits(logits[real], labels[real].float(), reduction="sum")
            return Loss({"loss": loss})
        uniform = (labels == 1).float() / (labels == 1).sum(1, keepdim=True).clamp(min=1)
        shares = logits.log_softmax(-1).masked_fill(uniform == 0, 0)
        return Loss({"loss": -(uniform * shares).sum()})

    def predict(self, model: Sequencer, batch: Batch, targets: Targets) -> list[Prediction]:
        """The likeliest region, with its picture for examples that show several."""
        logits, regions = self.logits(model, batch), batch.inputs[self.config.image]
        shares = logits.sigmoid() if self.config.loss == "bce" else logits.softmax(-1)
        pictures = regions.get("picture", torch.zeros_like(regions["mask"], dtype=torch.long))
        several = (pictures * regions["mask"]).amax(1) > 0
        predictions = []
        for row, best in enumerate(logits.argmax(-1).tolist()):
            (box,) = plain(regions["boxes"][row, best].unsqueeze(0))
            more = {"picture": int(pictures[row, best])} if several[row] else {}
            predictions.append(
                Prediction(batch.ids[row], {"box": box, "index": best, **more}, shares[row, best].item())
            )
        return predictions
