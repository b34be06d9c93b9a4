"""What others call the heads of the tasks: VisualBERT's original code "classifier" (in its files "bert.classifier"),
transformers' classes "cls"."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

NAMES = ("cls", "classifier", "bert.classifier")


def published_head(weights: Mapping[str, Tensor], head: nn.Linear, own: str = "head") -> dict[str, Tensor]:
    """The one linear layer of a task, by the names of an objective that calls it `own`. A head with another number of
    outputs is another task's, and left alone."""
    for name in NAMES:
        called = {part: f"{name}.{part}" for part in ("weight", "bias")}
        if all(each in weights for each in called.values()) and weights[called["bias"]].shape == head.bias.shape:
            return {f"{own}.{part}": weights[each] for part, each in called.items()}
    return {}
