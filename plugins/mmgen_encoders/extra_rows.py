"""Adds rows to an encoder's tables of positions and token types; finds these tables."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from mmgen.errors import DataError

from . import Encoder

TABLES = {  # key of the config -> transformers' name of the table, and a name for messages
    "extra_positions": ("position_embeddings", "table of positions"),
    "extra_token_types": ("token_type_embeddings", "token types"),
}


def extend(model: Any, config: Encoder) -> list[nn.Embedding | None]:
    """Add `config`'s extra rows to the encoder's tables of positions and token types. Returns the tables, if any. New
    rows are initialised like the others. transformers' config keeps its original sizes; the recipe has the extra rows.
    Raises DataError for extra rows of a missing table."""
    tables = []
    for key, (name, description) in TABLES.items():
        extra, owner = getattr(config, key), _find_owner(model, name)
        if extra and owner is None:
            raise DataError(f"backbone.{key}: the encoder '{config.type}' has no {description}; remove {key}")
        if extra and owner is not None:
            setattr(owner, name, _add_rows(getattr(owner, name), extra, model.config.initializer_range))
        tables.append(None if owner is None else getattr(owner, name))
    return tables


def added(config: Encoder) -> dict[str, int]:
    """The ends of the tables' names -> numbers of rows that `config` adds."""
    return {f"{table}.weight": getattr(config, key) for key, (table, _) in TABLES.items()}


def _find_owner(model: Any, name: str) -> nn.Module | None:
    """The module that has the table as an attribute."""
    return next(
        (module for module in model.base_model.modules() if isinstance(getattr(module, name, None), nn.Embedding)), None
    )


def _add_rows(table: nn.Embedding, rows: int, spread: float) -> nn.Embedding:
    """A copy of the table with more rows at its end."""
    weight = table.weight
    new = torch.empty(rows, weight.shape[1], dtype=weight.dtype, device=weight.device).normal_(std=spread)
    longer = nn.Embedding(len(weight) + rows, weight.shape[1], table.padding_idx, device="meta")
    longer.weight = nn.Parameter(torch.cat([weight.detach(), new]), requires_grad=weight.requires_grad)
    return longer
