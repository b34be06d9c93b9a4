"""Adam as BERT's own code has it: AdamW whose means are not corrected for having begun at 0.

VisualBERT learnt with it, as everything did that used the first releases of what is transformers today. Its first
updates are larger than AdamW's. Mosbach et al. (2021), "On the stability of fine-tuning BERT", say what that does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch


class BertAdam(torch.optim.Optimizer):
    """AdamW without bias correction; what it keeps has AdamW's names."""

    def __init__(self, groups: Iterable[dict[str, Any]], betas: tuple[float, float], eps: float) -> None:
        super().__init__(groups, {"betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            learnt = [parameter for parameter in group["params"] if parameter.grad is not None]
            if not learnt:
                continue
            for parameter in learnt:
                for name in ("exp_avg", "exp_avg_sq"):
                    if name not in self.state[parameter]:
                        self.state[parameter][name] = torch.zeros_like(parameter)
            means, squares = ([self.state[each][name] for each in learnt] for name in ("exp_avg", "exp_avg_sq"))
            gradients, (slow, slower) = [each.grad for each in learnt], group["betas"]
            torch._foreach_lerp_(means, gradients, 1 - slow)
            torch._foreach_mul_(squares, slower)
            torch._foreach_addcmul_(squares, gradients, gradients, 1 - slower)
            roots = torch._foreach_sqrt(squares)
            torch._foreach_add_(roots, group["eps"])
            torch._foreach_mul_(learnt, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_addcdiv_(learnt, means, roots, -group["lr"])
