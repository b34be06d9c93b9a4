"""Random weights that are not tiny, so that mistakes show."""

import torch


def perturbed(model, scale: float = 0.1):
    """The model with such weights, in eval mode."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * scale)
    return model.eval()
