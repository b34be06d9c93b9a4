"""Random draws of texts, each a function of a seed and a place, so that a text is the same alone and in a batch.

Seeds are int64 tensors. A hash makes further seeds of them (SplitMix64): of the texts of an input, of the steps of a
text, of the tokens of a step.
"""

from __future__ import annotations

import torch
from torch import Tensor

GOLDEN = 0x9E3779B97F4A7C15 - 2**64  # as int64, like the factors
ROUNDS = ((30, 0xBF58476D1CE4E5B9 - 2**64), (27, 0x94D049BB133111EB - 2**64), (31, 1))


def derive(seeds: Tensor, numbers: Tensor | int) -> Tensor:
    """A seed for each seed and number; shapes broadcast."""
    mixed = seeds + (torch.as_tensor(numbers, device=seeds.device) + 1) * GOLDEN
    for shift, factor in ROUNDS:
        mixed = (mixed ^ (mixed >> shift & 2 ** (64 - shift) - 1)) * factor  # a shift without the sign
    return mixed


def seeds_of_texts(seeds: Tensor | None, inputs: int, count: int, device: torch.device) -> Tensor:
    """(B, count) seeds of the texts of B inputs with `seeds` (B,) (`mmgen.tensors.Batch.seeds`); without these, from
    torch's random numbers."""
    if seeds is None:
        seeds = torch.randint(2**62, (inputs,), device=device)
    return derive(seeds.unsqueeze(1), torch.arange(count, device=device))


def uniform(seeds: Tensor, count: int) -> Tensor:
    """(..., count) float64 numbers between 0 and 1, both excluded, for seeds (...)."""
    bits = derive(seeds.unsqueeze(-1), torch.arange(count, device=seeds.device)) >> 11 & 2**53 - 1
    return (bits.double() + 0.5) * 2**-53


def draw(shares: Tensor, seeds: Tensor) -> Tensor:
    """(...) an index for each of the seeds (...), drawn in proportion to its `shares` (..., V): of exponential times
    with these rates, the first. In float64: lower precision samples from a narrower distribution (Zheng et al.,
    2024)."""
    return (shares.double() / -uniform(seeds, shares.shape[-1]).log()).argmax(-1)
