"""What others call VisualBERT's weights: the original code, and transformers' classes (`uclanlp/visualbert-*`)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from mmgen_encoders.names import Renamed
from torch import Tensor

PREFIXES = ("visual_bert.", "bert.")  # in front of the encoder: transformers' and the original's
TABLES = {  # of words -> of regions: transformers' name, the original's; and how many rows of it are used
    "embeddings.token_type_embeddings.weight": (
        "embeddings.visual_token_type_embeddings.weight",
        "embeddings.token_type_embeddings_visual.weight",
        2,
    ),
    "embeddings.position_embeddings.weight": (
        "embeddings.visual_position_embeddings.weight",
        "embeddings.position_embeddings_visual.weight",
        1,
    ),
}
PROJECTIONS = ("embeddings.visual_projection.", "embeddings.projection.")
FUSION = "additional_layer."


def as_bert(weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """By the names of transformers' BERT, with the rows of regions behind those of words in both tables: their own, or
    else, as where training began, words' first rows. What BERT has not is left out."""
    within = _within(weights)
    others = {name for *both, _ in TABLES.values() for name in both}
    found: dict[str, str | Tensor] = {}
    for name, own in within.items():
        if name in TABLES:
            *called, rows = TABLES[name]
            visual = next((weights[within[other]] for other in called if other in within), None)
            whole = weights[own]
            found[f"bert.{name}"] = torch.cat([whole, (whole if visual is None else visual)[:rows].to(whole.dtype)])
        elif name not in others and not name.startswith((*PROJECTIONS, FUSION)):
            found[f"bert.{name}"] = own
    return Renamed(weights, found | {name: name for name in weights if name.startswith("cls.predictions.")})


def fusion(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The layer of late fusion (`bypass_transformer`), by the names of transformers' BERT within a layer."""
    return {
        name.removeprefix(FUSION): weights[own] for name, own in _within(weights).items() if name.startswith(FUSION)
    }


def projection(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """weight (E, D) and bias (E,) of the layer in front of the regions."""
    within = _within(weights)
    return {
        part: weights[within[name + part]]
        for name in PROJECTIONS
        for part in ("weight", "bias")
        if name + part in within
    }


def _within(weights: Mapping[str, Tensor]) -> dict[str, str]:
    """Names within the encoder -> names as they are."""
    return {
        name.removeprefix(prefix): name
        for name in weights
        for prefix in PREFIXES
        if name.startswith(prefix) and not name.removeprefix(prefix).startswith(PREFIXES)
    }
