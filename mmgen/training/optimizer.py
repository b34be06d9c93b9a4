"""How a step learns: what of the model, with which optimiser, at which rate and precision, from which random
numbers."""

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
    """What the step names learns, and the heads of its objectives; all else is frozen and in eval mode. Parameters that
    the step freezes by name stay as they are in any part. Raises RunError (see `frozen`)."""
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
    """Names of the parameters that match one of the patterns. Raises RunError for a pattern that matches none: it would
    freeze nothing, without a word."""
    names = [name for name, _ in model.named_parameters()]
    found = {pattern: {name for name in names if fnmatchcase(name, pattern)} for pattern in patterns}
    for pattern, matched in found.items():
        if not matched:
            raise RunError(f"training.freeze: no parameter is called '{pattern}'{_meant(pattern, names)}")
    return set().union(*found.values())


def _meant(pattern: str, names: Collection[str]) -> str:
    """What a person may have meant by a pattern that matches nothing: a module's name, or a misspelt one."""
    if any(fnmatchcase(name, f"{pattern}.*") for name in names):
        return f"; did you mean '{pattern}.*'?"
    core = pattern.strip("*.")
    size = core.count(".") + 1
    split = [name.split(".") for name in names]
    pieces = {".".join(parts[at : at + size]) for parts in split for at in range(len(parts) - size + 1)}
    return did_you_mean(core, sorted(pieces))


def make_optimizer(learning: Mapping[str, nn.Parameter], step: Step) -> torch.optim.Optimizer:
    """AdamW or SGD, without weight decay of biases and norms (Devlin et al., 2019).
    `learning`: what learns, by the names that a model gives it."""
    training = step.training
    groups: dict[tuple[bool, float, float], list[nn.Parameter]] = {}  # by (of_input, peak, decay); each takes time
    for name, parameter in learning.items():
        of_input = training.input_learning_rate is not None and name.startswith("embedders.")
        peak = (training.input_learning_rate if of_input else None) or training.learning_rate
        decay = training.weight_decay if parameter.ndim > 1 else 0.0
        groups.setdefault((of_input, peak, decay), []).append(parameter)
    if not groups:
        left = " that training.freeze leaves" if training.freeze else ""
        raise RunError(f"a step that learns {', '.join(step.train)} has no parameters to learn{left}")
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
    """Scale gradients down to `max_grad_norm`. For the log: `grad_norm`, that of all together before, and `clipped`:
    whether they were scaled down, or the share of parameters whose own gradient was."""
    limit = training.max_grad_norm
    if training.clip == "whole" or limit is None:
        norm = _whole(torch.nn.utils.clip_grad_norm_(parameters, limit or math.inf)).item()
        return {"grad_norm": norm, **({"clipped": norm > limit} if limit else {})}
    reached = [parameter for parameter in parameters if parameter.grad is not None]
    if not reached:  # an update whose examples have nothing to be predicted
        return {"grad_norm": 0.0, "clipped": 0.0}
    norms = torch.stack([_whole(torch.nn.utils.clip_grad_norm_([parameter], limit)) for parameter in reached])
    norm, share = torch.stack([norms.norm(), (norms > limit).float().mean()]).tolist()
    return {"grad_norm": norm, "clipped": share}


def _whole(norm: Tensor) -> Tensor:
    """A norm over all processes, where each holds slices."""
    return norm.full_tensor() if isinstance(norm, DTensor) else norm


def rates(optimizer: torch.optim.Optimizer) -> dict[str, float]:
    """For the log: `lr`, the rate that what learns was just updated with, and `input_lr`, that of embedders where
    another part of the model learns at another rate. A step in which only embedders learn has theirs as its `lr`."""
    found = {"input_lr" if group["of_input"] else "lr": group["lr"] for group in optimizer.param_groups}
    used = set(found.values())
    return found if len(used) > 1 else {"lr": used.pop()}


def schedule(plan: Plan, update: int, training: Training) -> float:
    """Share of the highest rate for an update of a plan: up linearly in the warm-up, then as `decay` says."""
    total = len(plan)
    rising = training.warmup_updates or max(1, round(total * training.warmup_ratio))
    risen = (update + 1) / rising if update < rising else 1.0
    if training.lr_scheduler == "linear":
        return risen if update < rising else (total - update) / max(1, total - rising)
    return risen * training.lr_gamma ** sum(end <= plan.epoch(update) for end in training.lr_milestones)
