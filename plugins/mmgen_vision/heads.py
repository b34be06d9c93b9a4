"""Heads of tasks: the states of regions that they read, their layers, and their names in published weights.

A task's head is "classifier" in VisualBERT's original code ("bert.classifier" in its files) and "cls" in transformers'
classes; VL-BERT's head over regions is "mvrc_head"."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from mmgen.objectives import Sequencer
from mmgen.parts import has_all
from mmgen.tensors import Batch

VLBERT_REGIONS = {
    "dense": "mvrc_head.transform.dense",
    "classes": "mvrc_head.region_cls_pred",
}  # our layers -> VL-BERT's
NAMES = ("cls", "classifier", "bert.classifier")


def published_head(weights: Mapping[str, Tensor], head: nn.Linear, prefix: str = "head") -> dict[str, Tensor]:
    """The weights of a task's linear layer, named `prefix`.weight and `prefix`.bias. Ignores a head with a different
    number of outputs: it belongs to another task."""
    for name in NAMES:
        keys = {part: f"{name}.{part}" for part in ("weight", "bias")}
        there = [key for key in keys.values() if key in weights]
        if there and weights[there[-1]].shape[:1] == head.bias.shape and has_all(there, [*keys.values()], "the head"):
            return {f"{prefix}.{part}": weights[key] for part, key in keys.items()}
    return {}


def region_states(model: Sequencer, batch: Batch, name: str, count: int) -> Tensor:
    """(B, count, H) last states of the regions of the input `name`; other slots may follow its regions."""
    return model.encode(batch).inputs[name][:, :count]


def region_layers(width: int, classes: int) -> tuple[nn.Linear, nn.Linear]:
    """The hidden layer (H, H) and the output layer (H, C) of a head over states of regions, initialised as in BERT."""
    dense, logits = nn.Linear(width, width), nn.Linear(width, classes)
    for layer in (dense, logits):
        nn.init.normal_(layer.weight, std=0.02)
        nn.init.zeros_(layer.bias)
    return dense, logits


def init_layer_from(layer: nn.Module, model: Sequencer, name: str) -> None:
    """Copy the hidden layer of the objective `name` of the model, if it has one, into `layer`; "" names none."""
    source = model.objective(name).hidden_layer() if name else None
    if source is not None:
        layer.load_state_dict(source.state_dict())


def published_layer(weights: Mapping[str, Tensor], theirs: str, layer: str) -> dict[str, Tensor]:
    """For `Objective.published`: the weight and bias of the published layer whose name ends in `theirs`, as those of
    `layer`. What is missing is left out."""
    names = {f"{layer}.{kind}": f"{theirs}.{kind}" for kind in ("weight", "bias")}
    return {ours: weights[name] for ours, end in names.items() for name in weights if name.endswith(end)}
