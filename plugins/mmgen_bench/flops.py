"""The work of each system, counted: slots through the encoder and multiply-adds, including the vocabulary head.

A layer costs 12 h^2 multiply-adds per slot (four projections of h x h, a feed-forward part of 4 h). Attention costs 2 h
for every key that a query is multiplied with, masked or not. Our last layer computes keys and values of all slots
(2 h^2) and continues with predicted slots only (12 h^2, including their keys and values a second time). Training costs
three forward passes in every system, so only forward passes are counted.
"""

from __future__ import annotations

from dataclasses import dataclass

OURS, NAIVE, BERT2BERT, CAUSAL = "ours", "naive", "BERT2BERT", "causal BERT"
SYSTEMS = (OURS, NAIVE, BERT2BERT, CAUSAL)


@dataclass(frozen=True)
class Shape:
    """Sizes shared by all systems. A prefix is `[CLS] regions [SEP] caption`."""

    layers: int = 12
    width: int = 768
    vocabulary: int = 30_522
    regions: int = 36
    features: int = 2048
    caption: int = 16

    @property
    def prefix(self) -> int:
        return 2 + self.regions + self.caption

    @property
    def heads(self) -> int:
        """Number of heads: each 64 wide, as in BERT, if 64 divides the width; otherwise 4 heads."""
        return self.width // 64 if self.width % 64 == 0 else 4


@dataclass(frozen=True)
class Work:
    """Cost per question: slots through encoder layers, and multiply-adds."""

    slots: float
    multiply_adds: float


def training_work(shape: Shape, system: str, questions: int, tokens: int) -> Work:
    """Work of one forward pass per question; an image has `questions` questions of `tokens` tokens, end included."""
    prefix, h = shape.prefix, shape.width
    front = _front(shape) / questions  # once per image; naive: once per target position
    if system == OURS:
        row = prefix + (2 * tokens - 1) * questions
        slots, layers = row / questions, _all_layers(shape, row, tokens * questions, row) / questions
    elif system == NAIVE:
        passes = [prefix + t for t in range(1, tokens + 1)]
        slots, layers, front = (
            sum(passes),
            shape.layers * sum(_layer(h, row, row) for row in passes),
            tokens * _front(shape),
        )
    elif system == BERT2BERT:
        slots = prefix + tokens
        layers = shape.layers * (
            _layer(h, prefix, prefix) + _layer(h, tokens, tokens) + _cross_attention(h, tokens, prefix)
        )
    else:
        slots = prefix + tokens - 1
        layers = shape.layers * _layer(h, slots, slots)
    return Work(slots, front + layers + tokens * _head(shape))


def generation_work(shape: Shape, system: str, texts: int, tokens: int) -> Work:
    """Work per text, if `texts` (beams or samples) of `tokens` tokens are generated per image."""
    prefix, h = shape.prefix, shape.width
    front, heads = _front(shape) / texts, float(tokens)
    if system == OURS:  # X and the first [MASK] once, then two slots per step, multiplied with all texts' keys
        slots = (prefix + 1) / texts + 2 * (tokens - 1)
        layers = _all_layers(shape, prefix + 1, 1, prefix + 1) / texts + sum(
            _all_layers(shape, 2, 1, prefix + texts * t) for t in range(2, tokens + 1)
        )
        heads = tokens - 1 + 1 / texts
    elif system == NAIVE:
        passes = [prefix + t for t in range(1, tokens + 1)]
        slots, layers = sum(passes), shape.layers * sum(_layer(h, row, row) for row in passes)
    elif system == BERT2BERT:  # the encoder once per image; its keys and values once per text
        slots = prefix / texts + tokens
        layers = shape.layers * (
            _layer(h, prefix, prefix) / texts
            + _cross_attention(h, tokens, prefix)
            + sum(_layer(h, 1, t) for t in range(1, tokens + 1))
        )
    else:  # transformers encodes the prompt once per text
        slots = prefix + tokens - 1
        layers = shape.layers * (_layer(h, prefix, prefix) + sum(_layer(h, 1, prefix + t) for t in range(1, tokens)))
    return Work(slots, front + layers + heads * _head(shape))


def _layer(h: int, slots: float, keys: float) -> float:
    """One layer: `slots` that attend to `keys` each."""
    return 12 * h * h * slots + 2 * h * slots * keys


def _all_layers(shape: Shape, slots: float, predicted: float, keys: float) -> float:
    """All layers: `slots` that attend to `keys` each; in the last layer only the `predicted` slots."""
    h = shape.width
    return (shape.layers - 1) * _layer(h, slots, keys) + 2 * h * h * slots + _layer(h, predicted, keys)


def _cross_attention(h: int, slots: float, keys: float) -> float:
    """Cross-attention in one layer: query and output of each slot, key and value of each encoder state."""
    return 2 * h * h * slots + 2 * h * h * keys + 2 * h * slots * keys


def _head(shape: Shape) -> float:
    return shape.width**2 + shape.width * shape.vocabulary


def _front(shape: Shape) -> float:
    """The projection W of one image's regions."""
    return shape.regions * (shape.features + 4) * shape.width
