"""Random weights that are not tiny, so that mistakes show; models that are built once and copied."""

import copy
import functools

import torch


def built_once(build):
    """`build`, which seeds torch: further calls with the same arguments copy the first model, which takes a third of
    the time, and leave torch's random state as building does."""
    first = functools.cache(lambda *arguments, **options: (build(*arguments, **options), torch.get_rng_state()))

    def again(*arguments, **options):
        model, state = first(*arguments, **options)
        torch.set_rng_state(state)
        return copy.deepcopy(model)

    return again


def perturbed(model, scale: float = 0.1):
    """The model with such weights, in eval mode."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * scale)
    return model.eval()
