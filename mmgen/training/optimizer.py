"""What a step trains and how: frozen and trained parameters, optimiser, clipping, learning rates, their schedule."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import nn

from ..data.plan import Plan
from ..errors import DataError, RunError, did_you_mean
from ..model import EMBEDDERS, Model
from ..recipe.tables import Step
from ..recipe.training import Training


def set_learning(model: Model, step: Step) -> None:
    """Make the step's parts and the heads of its objectives trainable; freeze all other parts, in eval mode. Parameters
    that a part froze when it was built (`Model.frozen`), or that match `training.freeze`, stay frozen in every part. A
    normalisation whose parameters are frozen does not update its running statistics either."""
    model.train()
    for name in (*(["generator"] if model.has_generator else []), *model.objectives):
        learns = name in step.objectives
        model.objective(name).requires_grad_(learns).train(learns)
    for part in ("backbone", *model.inputs):
        learns = part in step.train
        model.part(part).requires_grad_(learns).train(learns)
    patterns, stays = step.training.freeze, set(model.frozen)
    for name, parameter in model.named_parameters():
        if name in stays or any(fnmatchcase(name, pattern) for pattern in patterns):
            stays.add(name)
            parameter.requires_grad_(False)
    for path, module in model.named_modules():
        local = {f"{path}.{name}" for name, _ in module.named_parameters(recurse=False)}
        if local and local <= stays and getattr(module, "track_running_stats", False):
            module.eval()


def check_patterns(model: nn.Module, patterns: Collection[str], about: tuple[str, ...]) -> None:
    """Raises DataError for a pattern that matches no parameter. `about`: the key of the recipe with the patterns."""
    names = [name for name, _ in model.named_parameters()]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            modules = [name for name, _ in model.named_modules()]
            similar = [form for name in modules for form in (f"{name}.*", f"*.{name.rpartition('.')[2]}.*")]
            raise DataError(f"no parameter matches '{pattern}'{did_you_mean(pattern, similar)}", about)


def make_optimizer(learning: Mapping[str, nn.Parameter], step: Step) -> torch.optim.Optimizer:
    """AdamW or SGD, without weight decay of biases and norms (Devlin et al., 2019). Without `bias_correction`, AdamW is
    that of BERT's original code, whose first updates are larger (Mosbach et al., 2021). `learning`: the trainable
    parameters, by the model's names."""
    training = step.training
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}  # each takes time
    for name, parameter in learning.items():
        decay = training.weight_decay if parameter.ndim > 1 else 0.0
        groups.setdefault((_choose_peak_rate(name, training), decay), []).append(parameter)
    if not groups:
        left = " that training.freeze leaves" if training.freeze else ""
        raise RunError(f"a step that trains {', '.join(step.train)} has no trainable parameters{left}")
    tables: list[dict[str, Any]] = [
        {"params": parameters, "lr": peak, "peak": peak, "weight_decay": decay}
        for (peak, decay), parameters in groups.items()
    ]
    if training.optimizer == "sgd":
        return torch.optim.SGD(tables, momentum=training.momentum)
    adam = torch.optim.AdamW(tables, betas=training.betas, eps=training.eps, fused=training.bias_correction)
    if not training.bias_correction:  # so many updates later, the correction of means that start at 0 is exactly 1
        for parameter in learning.values():
            moments = {name: torch.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq")}
            adam.state[parameter] = {"step": torch.tensor(1e9), **moments}
    return adam


def _choose_peak_rate(name: str, training: Training) -> float:
    """The highest learning rate of a parameter: that of the longest pattern that matches its name, or else of its kind
    of part."""
    if matching := [pattern for pattern in training.learning_rates if fnmatchcase(name, pattern)]:
        return training.learning_rates[max(matching, key=lambda pattern: (len(pattern), pattern))]
    if training.input_learning_rate is not None and name.startswith(EMBEDDERS):
        return training.input_learning_rate
    return training.learning_rate


def clip(parameters: Collection[nn.Parameter], training: Training) -> dict[str, Any]:
    """Scale gradients down to `max_grad_norm`. Returns for the log `grad_norm`, the norm of all gradients before, and
    `clipped`: whether they were scaled down, or the share of parameters whose gradient was."""
    limit, scale = training.max_grad_norm, torch.nn.utils.clip_grad_norm_
    if training.clip == "whole" or limit is None:
        norm = scale(parameters, limit or math.inf).item()
        return {"grad_norm": norm} | ({"clipped": norm > limit} if limit else {})
    norms = torch.stack([scale([p], limit) for p in parameters if p.grad is not None] or [torch.zeros(())])
    return {"grad_norm": norms.norm().item(), "clipped": (norms > limit).float().mean().item()}


def schedule(plan: Plan, update: int, training: Training) -> float:
    """The factor of the highest rate for an update of a plan: linear warm-up, then `lr_scheduler`."""
    total = len(plan)
    rising = training.warmup_updates or max(1, round(total * training.warmup_ratio))
    risen = (update + 1) / rising if update < rising else 1.0
    if training.lr_scheduler == "linear":
        return risen if update < rising else (total - update) / max(1, total - rising)
    return risen * training.lr_gamma ** sum(end <= plan.epoch(update) for end in training.lr_milestones)
