"""Precision: mixed precision of a step."""

from __future__ import annotations

import contextlib

import torch


def precision(name: str, device: torch.device) -> contextlib.AbstractContextManager:
    """Mixed precision of a step. (accelerate sets one for a process; here steps may differ.)"""
    bf16 = name == "bf16" or name == "auto" and device.type == "cuda" and torch.cuda.is_bf16_supported()
    return torch.autocast(device.type, torch.bfloat16) if bf16 else contextlib.nullcontext()
