"""Precision: mixed precision of a step."""

from __future__ import annotations

import contextlib

import torch


def precision(name: str, device: torch.device) -> contextlib.AbstractContextManager:
    """Mixed precision of a step. (accelerate sets one for a process; here steps may differ.)"""
    return torch.autocast(device.type, torch.bfloat16) if bf16(name, device) else contextlib.nullcontext()


def bf16(name: str, device: torch.device) -> bool:
    """Whether a step's precision is bf16 on this device."""
    return name == "bf16" or (name == "auto" and device.type == "cuda" and torch.cuda.is_bf16_supported())
