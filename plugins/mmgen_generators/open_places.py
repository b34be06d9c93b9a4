"""Predictions at open places of a text: which ones a pass keeps, and which are masked again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from mmgen.sampling import derive, draw, uniform

from . import AnyOrderDecoding


@dataclass(frozen=True)
class Predictions:
    """The tokens predicted at n places, or at the W places of the blocks of B x G texts.

    log_prob  log-probability under the model, without temperature
    surety    the rank by which `order` keeps tokens; the highest first
    """

    tokens: Tensor
    log_prob: Tensor
    surety: Tensor

    def at(self, places: Tensor) -> Predictions:
        """Predictions for these places (B, G, W) bool, row by row; 0 at the others."""
        tables = []
        for values in vars(self).values():
            table = values.new_zeros(places.shape)
            table[places] = values
            tables.append(table)
        return Predictions(*tables)


def predict(logits: Tensor, refused: Tensor, place: Tensor, seeds: Tensor, options: AnyOrderDecoding) -> Predictions:
    """Predict tokens from logits (n, V). `refused` (n, V) bool: tokens that must not be written. `place` (n,): the
    place of each in its text; `seeds` (n,): of its random numbers."""
    allowed = logits.masked_fill(refused, -torch.inf)
    shares = allowed.softmax(-1)
    if options.temperature:
        tokens = draw((allowed.double() / options.temperature).softmax(-1), seeds)
    else:
        tokens = allowed.argmax(-1)
    log_prob = logits.log_softmax(-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    ranks: dict[str, Callable[[], Tensor]] = {
        "confidence": lambda: shares.gather(-1, tokens.unsqueeze(-1)).squeeze(-1),
        "margin": lambda: -shares.topk(2, -1).values.diff().squeeze(-1),
        "entropy": lambda: -torch.special.entr(shares).sum(-1),
        "left_to_right": lambda: -place.to(shares.dtype),
        "random": lambda: uniform(derive(seeds, -1), 1).squeeze(-1).to(shares.dtype),
    }
    return Predictions(tokens, log_prob, ranks[options.order]())


def places_to_keep(
    predictions: Predictions, open_places: Tensor, number: int, places: Tensor, options: AnyOrderDecoding
) -> Tensor:
    """The predictions (B, G, W) that pass `number` (from 0) over a block keeps, at least one per text with open places.

    open_places (B, G, W) bool, places (B, G): the number of places that were open before the first pass.
    """
    if options.remask:
        return open_places
    surety = predictions.surety.masked_fill(~open_places, -torch.inf)
    rank = surety.argsort(stable=True, dim=-1, descending=True).argsort(-1)
    if options.threshold is not None:
        return open_places & ((rank == 0) | (surety > options.threshold))
    count = share_of(places, number + 1, options) - share_of(places, number, options)
    return open_places & (rank < count.unsqueeze(-1))


def share_of(places: Tensor, number: int, options: AnyOrderDecoding) -> Tensor:
    """How many of the `places` are written after `number` passes."""
    steps = places if options.steps is None else places.clamp(max=options.steps)
    return torch.where(steps > number, places * number // steps.clamp(min=1), places)


def masked_again(log_prob: Tensor, places: Tensor, number: int, options: AnyOrderDecoding) -> Tensor:
    """The least probable tokens (B, G, W) that mask-predict masks again after pass `number` (from 0).

    log_prob (B, G, W); places (B, G, W) bool: those that were open before the first pass."""
    total = places.sum(-1)
    steps = total.clamp(max=options.steps)
    count = torch.where(steps > number + 1, total * (steps - number - 1) // steps.clamp(min=1), 0)
    rank = log_prob.masked_fill(~places, torch.inf).argsort(stable=True, dim=-1).argsort(-1)
    return places & (rank < count.unsqueeze(-1))
