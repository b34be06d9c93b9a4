"""Attention for the page: how much each generated word attends to regions and to the caption's words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..attention_maps import WordAttention, all_layers, last_layer, word_attention
from ..data.seeds import resolve
from ..examples import Example, Generation, ResolvedExample
from ..model import Model
from ..oom import ADVICE_SMALLER, OomRetry

BATCH = 16
LAYER_CHOICES = {"last": last_layer, "all": all_layers}


@dataclass
class AttentionPanel:
    """The attention of all steps for one example.

    units     input -> names of its regions, or its words
    boxes     input -> its regions' boxes, if the input has boxes
    pictures  input -> index of each region's picture, from 0; empty for a single picture
    words     step -> the generated words
    weights   "last" or "all" layers -> step -> one row per word: its inputs' units, special tokens, generated words;
              in ten-thousandths of the word's attention
    """

    units: dict[str, list[str]] = field(default_factory=dict)
    boxes: dict[str, list[list[float]]] = field(default_factory=dict)
    pictures: dict[str, list[int]] = field(default_factory=dict)
    words: dict[str, list[str]] = field(default_factory=dict)
    weights: dict[str, dict[str, list[list[int]]]] = field(default_factory=dict)


def attention_panel(
    model: Model,
    step: str,
    inputs: Sequence[str],
    examples: Sequence[Example],
    texts: Mapping[str, Generation],
    panels: Mapping[str, AttentionPanel],
    advance: Callable[..., None],
) -> None:
    """Add the attention of one step's model to `panels`, which has one panel per example id."""

    def read(part: Sequence[ResolvedExample]) -> list[WordAttention]:
        written = [texts[example.id].tokens[: model.generator.max_tokens] for example in part]
        return word_attention(model, part, inputs, written, LAYER_CHOICES)

    model.eval()
    halving = OomRetry(f"attention: {step}", ADVICE_SMALLER)
    for first in range(0, len(examples), BATCH):
        for part, attentions in halving.over([resolve(example) for example in examples[first : first + BATCH]], read):
            for example, attention in zip(part, attentions, strict=True):
                _add_attention(panels[example.id], step, attention)
            advance(len(part))


def _add_attention(panel: AttentionPanel, step: str, attention: WordAttention) -> None:
    panel.words[step] = list(attention.words)
    for name, units in attention.units.items():
        panel.units[name] = list(units.names)
        if units.boxes:
            panel.pictures[name] = list(units.pictures)
            panel.boxes[name] = [[round(number, 3) for number in box] for box in units.boxes]
    for layers, weights in attention.weights.items():
        panel.weights.setdefault(layers, {})[step] = (10_000 * weights).round().int().tolist()
