"""Optimisation of a step: trainable parameters, optimiser, clipping, and the schedule of the learning rate."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from ..data.plan import Plan
from ..errors import RunError, did_you_mean
from ..model import Model
from ..recipe.tables import Step
from ..recipe.training import Training
from .bert_adam import BertAdam


def set_learning(model: Model, step: Step) -> None:
    """Make the step's parts and the heads of its objectives trainable; freeze all other parts, in eval mode. Parameters
    that match `training.freeze` stay frozen in every part. Raises RunError (see `frozen`)."""
    model.train()
    for name in ("generator", *model.objectives):
        learns = name in step.objectives
        model.objective(name).requires_grad_(learns).train(learns)
    for part in ("backbone", *model.inputs):
        learns = part in step.train
        model.part(part).requires_grad_(learns).train(learns)
    stays = frozen(model, step.training.freeze)
    for name, parameter in model.named_parameters():
        if name in stays:
            parameter.requires_grad_(False)


def frozen(model: nn.Module, patterns: Collection[str]) -> set[str]:
    """Names of the parameters that match one of the patterns. Raises RunError for a pattern without a match."""
    names = [name for name, _ in model.named_parameters()]
    matches = {pattern: {name for name in names if fnmatchcase(name, pattern)} for pattern in patterns}
    for pattern, matched in matches.items():
        if not matched:
            raise RunError(f"training.freeze: no parameter is called '{pattern}'{_suggest_pattern(pattern, names)}")
    return set().union(*matches.values())


def _suggest_pattern(pattern: str, names: Collection[str]) -> str:
    """A suggestion for a pattern without a match: the pattern of a module's parameters, or a similar name."""
    if any(fnmatchcase(name, f"{pattern}.*") for name in names):
        return f"; did you mean '{pattern}.*'?"
    core = pattern.strip("*.")
    size = core.count(".") + 1
    split = [name.split(".") for name in names]
    pieces = {".".join(parts[at : at + size]) for parts in split for at in range(len(parts) - size + 1)}
    return did_you_mean(core, sorted(pieces))


def make_optimizer(learning: Mapping[str, nn.Parameter], step: Step) -> torch.optim.Optimizer:
    """AdamW or SGD, without weight decay of biases and norms (Devlin et al., 2019).
    `learning`: the trainable parameters, by the model's names."""
    training = step.training
    groups: dict[tuple[bool, float, float], list[nn.Parameter]] = {}  # by (of_input, peak, decay); each takes time
    for name, parameter in learning.items():
        of_input = training.input_learning_rate is not None and name.startswith("embedders.")
        peak = (training.input_learning_rate if of_input else None) or training.learning_rate
        decay = training.weight_decay if parameter.ndim > 1 else 0.0
        groups.setdefault((of_input, peak, decay), []).append(parameter)
    if not groups:
        left = " that training.freeze leaves" if training.freeze else ""
        raise RunError(f"a step that trains {', '.join(step.train)} has no trainable parameters{left}")
    tables: list[dict[str, Any]] = [
        {"params": parameters, "lr": peak, "peak": peak, "weight_decay": decay, "of_input": of_input}
        for (of_input, peak, decay), parameters in groups.items()
    ]
    if training.optimizer == "sgd":
        return torch.optim.SGD(tables, momentum=training.momentum)  # the fused one cannot take slices
    if not training.bias_correction:
        return BertAdam(tables, training.betas, training.eps)
    return torch.optim.AdamW(tables, betas=training.betas, eps=training.eps, fused=True)


def clip(parameters: Collection[nn.Parameter], training: Training) -> dict[str, Any]:
    """Scale gradients down to `max_grad_norm`. Returns for the log `grad_norm`, the norm of all gradients before, and
    `clipped`: whether they were scaled down, or the share of parameters whose gradient was."""
    limit = training.max_grad_norm
    if training.clip == "whole" or limit is None:
        norm = _full_norm(torch.nn.utils.clip_grad_norm_(parameters, limit or math.inf)).item()
        return {"grad_norm": norm, **({"clipped": norm > limit} if limit else {})}
    reached = [parameter for parameter in parameters if parameter.grad is not None]
    if not reached:  # an update whose examples have nothing to predict
        return {"grad_norm": 0.0, "clipped": 0.0}
    norms = torch.stack([_full_norm(torch.nn.utils.clip_grad_norm_([parameter], limit)) for parameter in reached])
    norm, share = torch.stack([norms.norm(), (norms > limit).float().mean()]).tolist()
    return {"grad_norm": norm, "clipped": share}


def _full_norm(norm: Tensor) -> Tensor:
    """A norm over all processes of a sharded model."""
    return norm.full_tensor() if isinstance(norm, DTensor) else norm


def rates(optimizer: torch.optim.Optimizer) -> dict[str, float]:
    """For the log: `lr`, the learning rate of the last update, and `input_lr`, that of embedders if other parts train
    at a different rate. A step that trains only embedders has their rate as `lr`."""
    used_rates = {"input_lr" if group["of_input"] else "lr": group["lr"] for group in optimizer.param_groups}
    used = set(used_rates.values())
    return used_rates if len(used) > 1 else {"lr": used.pop()}


def schedule(plan: Plan, update: int, training: Training) -> float:
    """The factor of the highest rate for an update of a plan: linear warm-up, then `lr_scheduler`."""
    total = len(plan)
    rising = training.warmup_updates or max(1, round(total * training.warmup_ratio))
    risen = (update + 1) / rising if update < rising else 1.0
    if training.lr_scheduler == "linear":
        return risen if update < rising else (total - update) / max(1, total - rising)
    return risen * training.lr_gamma ** sum(end <= plan.epoch(update) for end in training.lr_milestones)
