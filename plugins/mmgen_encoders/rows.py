"""More rows for an encoder's tables of positions and token types, behind its own."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from mmgen.errors import DataError

from . import Encoder

TABLES = {  # key of the config -> transformers' name of the table, and ours
    "extra_positions": ("position_embeddings", "table of positions"),
    "extra_types": ("token_type_embeddings", "token types"),
}


def extend(model: Any, config: Encoder) -> tuple[int, int]:
    """How many rows the encoder's tables of positions and of token types have, `config`'s extra ones included; 0 for a
    table that it lacks. New rows are drawn as the others were. transformers' config keeps the encoder's own numbers:
    the recipe says what is added. Raises DataError where rows are wanted of a table that is not there."""
    found = []
    for key, (name, words) in TABLES.items():
        wanted, owner = getattr(config, key), _owner(model, name)
        if wanted and owner is None:
            raise DataError(f"backbone.{key}: the encoder '{config.type}' has no {words}; leave it out")
        if wanted and owner is not None:
            setattr(owner, name, _longer(getattr(owner, name), wanted, model.config.initializer_range))
        found.append(0 if owner is None else getattr(owner, name).num_embeddings)
    return found[0], found[1]


def _owner(model: Any, name: str) -> nn.Module | None:
    """The module that holds a table."""
    return next(
        (each for each in model.base_model.modules() if isinstance(getattr(each, name, None), nn.Embedding)), None
    )


def _longer(table: nn.Embedding, rows: int, spread: float) -> nn.Embedding:
    """A table with more rows behind its own."""
    own = table.weight
    new = torch.empty(rows, own.shape[1], dtype=own.dtype, device=own.device).normal_(std=spread)
    longer = nn.Embedding(len(own) + rows, own.shape[1], table.padding_idx, device="meta")
    longer.weight = nn.Parameter(torch.cat([own.detach(), new]), requires_grad=own.requires_grad)
    return longer
