"""How a step learns: what of the model, with which optimiser, at which rate and precision, from which random
numbers."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from ..errors import RunError
from ..model import Model
from ..recipe.tables import Step


def set_learning(model: Model, step: Step) -> None:
    """What the step names learns, and the heads of its objectives; all else is frozen and in eval mode."""
    model.train()
    for name in ("generator", *model.objectives):
        learns = name in step.objectives
        model.objective(name).requires_grad_(learns).train(learns)
    for part in ("backbone", *model.inputs):
        learns = part in step.learn
        model.part(part).requires_grad_(learns).train(learns)


def make_optimizer(learning: Mapping[str, nn.Parameter], step: Step) -> torch.optim.AdamW:
    """AdamW as BERT was trained with it: weight decay but for biases and norms (Devlin et al., 2019). `learning`: what
    learns, by the names that a model gives it."""
    training = step.training
    groups: dict[tuple[bool, float, float], list[nn.Parameter]] = {}  # by (of_input, peak, decay)
    for name, parameter in learning.items():
        of_input = name.startswith("embedders.")
        peak = training.input_learning_rate if of_input and training.input_learning_rate else training.learning_rate
        decay = training.weight_decay if parameter.ndim > 1 else 0.0
        groups.setdefault((of_input, peak, decay), []).append(parameter)
    if not groups:
        raise RunError(f"a step that learns {', '.join(step.learn)} has no parameters to learn")
    return torch.optim.AdamW(
        [
            {"params": parameters, "lr": peak, "peak": peak, "weight_decay": decay, "of_input": of_input}
            for (of_input, peak, decay), parameters in groups.items()
        ],
        fused=True,
    )


def rates(optimizer: torch.optim.Optimizer) -> dict[str, float]:
    """For the log: `lr`, the rate that what learns was just updated with, and `input_lr`, that of embedders where
    another part of the model learns at another rate. A step in which only embedders learn has theirs as its `lr`."""
    found = {"input_lr" if group["of_input"] else "lr": group["lr"] for group in optimizer.param_groups}
    used = set(found.values())
    return found if len(used) > 1 else {"lr": used.pop()}


def schedule(update: int, total: int, warmup: float) -> float:
    """Share of the highest rate: up linearly over the first `warmup` of the updates, then down to 0."""
    rising = max(1, round(total * warmup))
    return (update + 1) / rising if update < rising else (total - update) / max(1, total - rising)
