"""Heads over states, and what others call them.

VisualBERT's original code calls a task's head "classifier" (in its files "bert.classifier"), transformers' classes call
it "cls"; VL-BERT's head over regions is "mvrc_head"."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from mmgen.objectives import Sequencer
from mmgen.tensors import Batch

VLBERT_REGIONS = {"dense": "mvrc_head.transform.dense", "classes": "mvrc_head.region_cls_pred"}  # our layers -> its
NAMES = ("cls", "classifier", "bert.classifier")


def published_head(weights: Mapping[str, Tensor], head: nn.Linear, prefix: str = "head") -> dict[str, Tensor]:
    """The one linear layer of a task, by the names of an objective that calls it `own`. A head with another number of
    outputs is another task's, and left alone."""
    for name in NAMES:
        called = {part: f"{name}.{part}" for part in ("weight", "bias")}
        if all(key in weights for key in called.values()) and weights[called["bias"]].shape == head.bias.shape:
            return {f"{prefix}.{part}": weights[key] for part, key in called.items()}
    return {}


def region_states(model: Sequencer, batch: Batch, name: str, count: int) -> Tensor:
    """(B, count, H) last states of the regions of the input `name`, which may end in slots that are no regions."""
    return model.encode(batch).inputs[name][:, :count]


def region_layers(width: int, classes: int) -> tuple[nn.Linear, nn.Linear]:
    """The hidden layer (H, H) and the logits (H, C) of a head over states of regions, begun as BERT's are."""
    dense, logits = nn.Linear(width, width), nn.Linear(width, classes)
    for layer in (dense, logits):
        nn.init.normal_(layer.weight, std=0.02)
        nn.init.zeros_(layer.bias)
    return dense, logits
