"""Names of VisualBERT's weights in the original code and in transformers' classes (`uclanlp/visualbert-*`).

In files of the original code, every name has one more "bert." in front: the encoder is "bert.bert."."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from mmgen_encoders.published_weights import Renamed
from torch import Tensor

from mmgen.errors import DataError

WRAPPER = "bert."  # first part of every name in files of the original code
PREFIXES = ("visual_bert.", "bert.")  # prefix of the encoder: in transformers, in the original code
TABLES = {  # table of words -> table of regions: name in transformers, in the original code; number of its rows in use
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
    """Rename the weights to the names of transformers' BERT. In both tables the rows of regions follow the rows of
    words; without rows of regions, they are the words' first rows, as at initialisation. Weights that BERT does not
    have are left out. Raises DataError if two tables differ in width, are quantised, or have too few rows."""
    within, front = _names_within_encoder(weights), _common_prefix(weights)
    region_tables = {name for *both, _ in TABLES.values() for name in both}
    sources: dict[str, str | Tensor] = {}
    for name, source in within.items():
        if name in TABLES:
            *region_names, rows = TABLES[name]
            visual = next((within[candidate] for candidate in region_names if candidate in within), source)
            sources[f"bert.{name}"] = _join_tables(weights, source, visual, rows)
        elif name not in region_tables and not name.startswith((*PROJECTIONS, FUSION)):
            sources[f"bert.{name}"] = source
    head = {name: name.removeprefix(front) for name in weights if name.startswith(f"{front}cls.predictions.")}
    return Renamed(weights, sources | {inner: name for name, inner in head.items()})


def fusion(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of the late-fusion layer (`bypass_transformer`), with the names of a layer of transformers' BERT."""
    return {
        name.removeprefix(FUSION): weights[source]
        for name, source in _names_within_encoder(weights).items()
        if name.startswith(FUSION)
    }


def projection(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """weight (E, D) and bias (E,) of the projection of regions."""
    within = _names_within_encoder(weights)
    return {
        part: weights[within[name + part]]
        for name in PROJECTIONS
        for part in ("weight", "bias")
        if name + part in within
    }


def _join_tables(weights: Mapping[str, Tensor], words: str, regions: str, rows: int) -> Tensor:
    """The table of words (N, H), followed by the first `rows` rows of the table of regions."""
    for name in dict.fromkeys((words, regions)):
        table = weights[name]
        if table.ndim != 2 or table.shape[1] != weights[words].shape[-1]:
            raise DataError(
                f"'{name}' has shape {tuple(table.shape)} and '{words}' has shape {tuple(weights[words].shape)}; both "
                "must be tables of equal width"
            )
        if not table.is_floating_point():
            raise DataError(
                f"'{name}' is quantised ({table.dtype}) without its scales; use weights that are not quantised"
            )
    if len(weights[regions]) < rows:
        raise DataError(
            f"'{regions}' has shape {tuple(weights[regions].shape)}, but VisualBERT needs {rows} rows; the file is "
            "damaged"
        )
    word_table = weights[words]
    return torch.cat([word_table, weights[regions][:rows].to(word_table.dtype)])


def _common_prefix(weights: Mapping[str, Tensor]) -> str:
    """The common prefix of all names: of the encoder, the masked-LM head and the tasks' heads."""
    return WRAPPER if any(name.startswith(2 * WRAPPER) for name in weights) else ""


def _names_within_encoder(weights: Mapping[str, Tensor]) -> dict[str, str]:
    """Names within the encoder -> full names."""
    front = _common_prefix(weights)
    return {
        name.removeprefix(front + prefix): name
        for name in weights
        for prefix in PREFIXES
        if name.startswith(front + prefix) and not name.removeprefix(front + prefix).startswith(PREFIXES)
    }
