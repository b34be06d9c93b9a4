"""What others call VisualBERT's weights: the original code, and transformers' classes (`uclanlp/visualbert-*`).

The original code's files begin every name of BERT's with one more "bert.": its encoder is "bert.bert." there."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from mmgen_encoders.names import Renamed
from torch import Tensor

from mmgen.errors import DataError

WRAPPER = "bert."  # what such a file begins its names with
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
    else, as where training began, words' first rows. What BERT has not is left out. Raises DataError where the two
    tables are not of one width, are quantised, or have too few rows."""
    within, front = _within(weights), _front(weights)
    region_tables = {name for *both, _ in TABLES.values() for name in both}
    sources: dict[str, str | Tensor] = {}
    for name, source in within.items():
        if name in TABLES:
            *called, rows = TABLES[name]
            visual = next((within[candidate] for candidate in called if candidate in within), source)
            sources[f"bert.{name}"] = _joined(weights, source, visual, rows)
        elif name not in region_tables and not name.startswith((*PROJECTIONS, FUSION)):
            sources[f"bert.{name}"] = source
    head = {name: name.removeprefix(front) for name in weights if name.startswith(f"{front}cls.predictions.")}
    return Renamed(weights, sources | {inner: name for name, inner in head.items()})


def fusion(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The layer of late fusion (`bypass_transformer`), by the names of transformers' BERT within a layer."""
    return {
        name.removeprefix(FUSION): weights[source]
        for name, source in _within(weights).items()
        if name.startswith(FUSION)
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


def _joined(weights: Mapping[str, Tensor], words: str, regions: str, rows: int) -> Tensor:
    """The table of words (N, H), and the first rows of that of regions behind it."""
    for name in dict.fromkeys((words, regions)):
        table = weights[name]
        if table.ndim != 2 or table.shape[1] != weights[words].shape[-1]:
            raise DataError(
                f"'{name}' is {tuple(table.shape)}, and '{words}' {tuple(weights[words].shape)}; both are tables of "
                "one width in VisualBERT"
            )
        if not table.is_floating_point():
            raise DataError(
                f"'{name}' has numbers of another kind ({table.dtype}), which mean nothing without what they were "
                "scaled by; take weights that are not quantised"
            )
    if len(weights[regions]) < rows:
        raise DataError(
            f"'{regions}' is {tuple(weights[regions].shape)}, and VisualBERT uses {rows} of its rows; it is damaged"
        )
    word_table = weights[words]
    return torch.cat([word_table, weights[regions][:rows].to(word_table.dtype)])


def _front(weights: Mapping[str, Tensor]) -> str:
    """What stands in front of the encoder, of the head for words and of the tasks' heads alike."""
    return WRAPPER if any(name.startswith(2 * WRAPPER) for name in weights) else ""


def _within(weights: Mapping[str, Tensor]) -> dict[str, str]:
    """Names within the encoder -> names as they are."""
    front = _front(weights)
    return {
        name.removeprefix(front + prefix): name
        for name in weights
        for prefix in PREFIXES
        if name.startswith(front + prefix) and not name.removeprefix(front + prefix).startswith(PREFIXES)
    }
