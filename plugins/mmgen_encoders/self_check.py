"""Compares a backbone with the model that it holds, on made-up rows: an encoder is tried, not believed."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from mmgen.tensors import PAD, PREFIX, Layout, Slots

from .encoder import EncoderBackbone
from .reach import MIXES

SLOTS = 40  # that `difference_from_source` compares
CLOSE = 1e-3  # share of the largest logit; other kernels and orders of sums differ by less


@torch.no_grad()
def difference_from_source(backbone: EncoderBackbone) -> str:
    """How the backbone differs from the model that it holds, called by itself; empty if it does not.

    Compares the logits of 40 random slots of a plain row that is longer than every sliding window, and checks that
    slots which see only themselves do not depend on each other. Takes milliseconds for small encoders.
    """
    was_training = backbone.training
    backbone.eval()
    try:
        return _plain_row_problem(backbone) or _mixing_problem(backbone)
    finally:
        backbone.train(was_training)


def _plain_row_problem(backbone: EncoderBackbone) -> str:
    draw = torch.Generator().manual_seed(0)
    windows = [getattr(module, "sliding_window", None) for module in backbone.modules()]
    length = min(SLOTS + max((n for n in windows if isinstance(n, int)), default=0), backbone.max_positions)
    ids = _random_ids(backbone, length, draw)
    chosen = torch.randperm(length, generator=draw)[:SLOTS].sort().values
    source = backbone.model(input_ids=ids).logits[0, chosen]
    mask = torch.zeros_like(ids, dtype=torch.bool).index_fill(1, chosen, True)
    logits = backbone.logits(backbone.states_at(_row(backbone, ids, PREFIX), mask))
    difference = (logits - source).abs().amax(-1)
    worst = int(difference.argmax())
    if difference[worst] <= CLOSE * source.abs().max().clamp(min=1):
        return ""
    return (
        f"through mmgen its logits differ from its own by up to {float(difference[worst]):.2g} (slot {chosen[worst]} "
        f"of a row of {length}); its window, positions, embeddings or head work in a way that mmgen does not know"
    )


def _mixing_problem(backbone: EncoderBackbone) -> str:
    row = _row(backbone, _random_ids(backbone, 7, torch.Generator().manual_seed(1)), PAD)
    changed = row.states.clone()
    changed[:, 3] = row.states[:, 0]
    before, after = (
        backbone.encode(Slots(states, row.positions, row.types, row.layout)).last for states in (row.states, changed)
    )
    rest = torch.arange(7) != 3
    return "" if torch.allclose(before[:, rest], after[:, rest], rtol=CLOSE, atol=CLOSE) else MIXES


def _row(backbone: EncoderBackbone, ids: Tensor, role: int) -> Slots:
    """A row of tokens (1, L) that has one role."""
    zeros = torch.zeros_like(ids)
    positions = torch.arange(ids.shape[1])[None]
    return Slots(backbone.embed(ids), positions, zeros, Layout(torch.full_like(ids, role), zeros, zeros))


def _random_ids(backbone: EncoderBackbone, length: int, draw: torch.Generator) -> Tensor:
    """Tokens (1, length) other than padding; one in eight is the [MASK]."""
    words: Any = backbone.model.get_input_embeddings()
    ids = torch.randint(words.num_embeddings, (1, length), generator=draw)
    ids[ids == backbone.pad_id] = backbone.mask_id
    ids[:, ::8] = backbone.mask_id
    return ids
