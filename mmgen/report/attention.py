"""The attention that a page shows: each word a step wrote, and how it looked at regions and at the caption's words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..attention_maps import WordAttention, all_layers, last_layer, word_attention
from ..data.seeds import resolve
from ..model import Model
from ..oom import ADVICE_SMALLER, OomRetry
from ..tensors import Example, Generation, ResolvedExample

BATCH = 16
WAYS = {"last": last_layer, "all": all_layers}


@dataclass
class AttentionPanel:
    """Of one example.

    units     input -> labels of its regions, or its words
    boxes     input -> its regions' boxes, for inputs that have them
    pictures  input -> which of several pictures each region is of, from 0; empty where there is one
    words     step -> the words it wrote
    weights   way -> step -> a row a word: its inputs' units, special, written; in ten-thousandths of the word's
              attention
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
    """Fill `panels`, by example id, with what one step's model does."""

    def read(part: Sequence[ResolvedExample]) -> list[WordAttention]:
        written = [texts[example.id].tokens[: model.generator.max_tokens] for example in part]
        return word_attention(model, part, inputs, written, WAYS)

    model.eval()
    halving = OomRetry(f"attention: {step}", ADVICE_SMALLER)
    for first in range(0, len(examples), BATCH):
        for part, known in halving.over([resolve(example) for example in examples[first : first + BATCH]], read):
            for example, reading in zip(part, known, strict=True):
                _note(panels[example.id], step, reading)
            advance(len(part))


def _note(panel: AttentionPanel, step: str, reading: WordAttention) -> None:
    panel.words[step] = list(reading.words)
    for name, units in reading.units.items():
        panel.units[name] = list(units.labels)
        if units.boxes:
            panel.pictures[name] = list(units.pictures)
            panel.boxes[name] = [[round(number, 3) for number in box] for box in units.boxes]
    for way, weights in reading.weights.items():
        panel.weights.setdefault(way, {})[step] = (10_000 * weights).round().int().tolist()
