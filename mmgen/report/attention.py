"""Attention for the page: how much each generated word attends to regions and to the caption's words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..attention_maps import WordAttention, all_layers, last_layer, word_attention
from ..data.seeds import resolve
from ..examples import Example, Generation
from ..model import Model

BATCH = 16
LAYER_CHOICES = {"last": last_layer, "all": all_layers}

# The attention of all steps for one example, as the page's script reads it:
#   units     input -> names of its regions, or its words
#   boxes     input -> its regions' boxes, if the input has boxes
#   pictures  input -> index of each region's picture, from 0; empty for a single picture
#   words     step -> the generated words
#   weights   "last" or "all" layers -> step -> one row per word: its inputs' units, special tokens, generated words;
#             in ten-thousandths of the word's attention
Looks = dict[str, dict[str, Any]]


def add_attention(
    model: Model,
    step: str,
    inputs: Sequence[str],
    examples: Sequence[Example],
    texts: Mapping[str, Generation],
    looks: Mapping[str, Looks],
    advance: Callable[..., None],
) -> None:
    """Add the attention of one step's model to `looks`, by example id."""
    model.eval()
    for first in range(0, len(examples), BATCH):
        part = [resolve(example) for example in examples[first : first + BATCH]]
        written = [texts[example.id].tokens[: model.generator.max_tokens] for example in part]
        for example, attention in zip(part, word_attention(model, part, inputs, written, LAYER_CHOICES), strict=True):
            _add(looks[example.id], step, attention)
        advance(len(part))


def _add(looks: Looks, step: str, attention: WordAttention) -> None:
    looks["words"][step] = attention.words
    for name, units in attention.units.items():
        looks["units"][name] = units.names
        if units.boxes:
            looks["pictures"][name] = units.pictures
            looks["boxes"][name] = [[round(number, 3) for number in box] for box in units.boxes]
    for layers, weights in attention.weights.items():
        looks["weights"].setdefault(layers, {})[step] = (10_000 * weights).round().int().tolist()
