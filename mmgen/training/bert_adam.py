"""Adam as in BERT's original code: AdamW without the correction of means that start at 0.

VisualBERT was trained with it, like all models trained with the first releases of transformers. Its first updates are
larger than AdamW's. Mosbach et al. (2021), "On the stability of fine-tuning BERT", describe the effect.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch


class BertAdam(torch.optim.Optimizer):
    """AdamW without bias correction; its state has AdamW's names."""

    def __init__(self, groups: Iterable[dict[str, Any]], betas: tuple[float, float], eps: float) -> None:
        super().__init__(groups, {"betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            parameters = [parameter for parameter in group["params"] if parameter.grad is not None]
            if not parameters:
                continue
            for parameter in parameters:
                for name in ("exp_avg", "exp_avg_sq"):
                    if name not in self.state[parameter]:
                        self.state[parameter][name] = torch.zeros_like(parameter)
            means, squares = (
                [self.state[parameter][name] for parameter in parameters] for name in ("exp_avg", "exp_avg_sq")
            )
            gradients, (slow, slower) = [parameter.grad for parameter in parameters], group["betas"]
            torch._foreach_lerp_(means, gradients, 1 - slow)
            torch._foreach_mul_(squares, slower)
            torch._foreach_addcmul_(squares, gradients, gradients, 1 - slower)
            roots = torch._foreach_sqrt(squares)
            torch._foreach_add_(roots, group["eps"])
            torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_addcdiv_(parameters, means, roots, -group["lr"])
