"""What the original code calls VL-BERT's weights (`vl-bert-{base,large}-{e2e,prec}.model`)."""

from __future__ import annotations

from collections.abc import Mapping

from mmgen_encoders.names import Renamed
from torch import Tensor

from mmgen.errors import DataError

INSIDE = "vlbert."
BY_CHOICE = "_module."  # behind it in what the code for VCR saved, where a module around VL-BERT goes over choices
TYPES = "token_type_embeddings.weight"
TYPES_USED = 3  # of the text's two segments, and of regions
EMBEDDINGS = ("word_embeddings.", "position_embeddings.", "token_type_embeddings.")


def as_bert(weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """By the names of transformers' BERT. What BERT has not is left out. Raises DataError for a table of token types
    without regions' own."""
    sources: dict[str, str | Tensor] = {}
    inside = within(weights)
    if TYPES in inside and (table := weights[inside[TYPES]]).ndim == 2 and len(table) < TYPES_USED:
        raise DataError(
            f"'{inside[TYPES]}' is {tuple(table.shape)}, and VL-BERT uses {TYPES_USED} of its rows, the last for "
            "regions; it is damaged"
        )
    for inner, name in inside.items():
        if inner.startswith("encoder.") or inner.startswith("pooler."):
            sources[f"bert.{inner}"] = name
        elif inner.startswith(EMBEDDINGS):
            sources[f"bert.embeddings.{inner}"] = name
        elif inner.startswith("embedding_LayerNorm."):
            sources[f"bert.embeddings.LayerNorm.{inner.removeprefix('embedding_LayerNorm.')}"] = name
        elif inner.startswith("mlm_head.predictions."):
            sources[f"cls.{inner.removeprefix('mlm_head.')}"] = name
    return Renamed(weights, sources)


def within(weights: Mapping[str, Tensor]) -> dict[str, str]:
    """Names within VL-BERT itself -> names as they are: with "vlbert." in front, maybe "module." before it, and maybe
    "_module." behind it."""
    names = {}
    for name in weights:
        inner = name.removeprefix("module.")
        if inner.startswith(INSIDE):
            names[inner.removeprefix(INSIDE).removeprefix(BY_CHOICE)] = name
    return names


def outside(weights: Mapping[str, Tensor], name: str) -> str | None:
    """What a weight beside VL-BERT itself (the object word, the layer of features) is called there, if it is there."""
    return next((called for called in (name, f"module.{name}") if called in weights), None)
