"""Names of VL-BERT's weights in the original code (`vl-bert-{base,large}-{e2e,prec}.model`)."""

from __future__ import annotations

from collections.abc import Mapping

from mmgen_encoders.published_weights import Renamed
from torch import Tensor

from mmgen.errors import DataError

INSIDE = "vlbert."
BY_CHOICE = "_module."  # follows in files of the code for VCR, where a module around VL-BERT iterates over choices
TYPES = "token_type_embeddings.weight"
TYPES_USED = 3  # two for the text's segments, one for regions
EMBEDDINGS = ("word_embeddings.", "position_embeddings.", "token_type_embeddings.")


def as_bert(weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Rename the weights to the names of transformers' BERT. Weights that BERT does not have are left out. Raises
    DataError for a table of token types without a row for regions."""
    sources: dict[str, str | Tensor] = {}
    inside = within(weights)
    if TYPES in inside and (table := weights[inside[TYPES]]).ndim == 2 and len(table) < TYPES_USED:
        raise DataError(
            f"'{inside[TYPES]}' has shape {tuple(table.shape)}, but VL-BERT needs {TYPES_USED} rows, the last for "
            "regions; the file is damaged"
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
    """Names within VL-BERT -> full names, which start with "vlbert."; "module." may precede this prefix, and "_module."
    may follow it."""
    names = {}
    for name in weights:
        inner = name.removeprefix("module.")
        if inner.startswith(INSIDE):
            names[inner.removeprefix(INSIDE).removeprefix(BY_CHOICE)] = name
    return names


def outside(weights: Mapping[str, Tensor], name: str) -> str | None:
    """The full name of a weight outside VL-BERT itself (the object word, the layer of features), or None."""
    return next((key for key in (name, f"module.{name}") if key in weights), None)
