"""The work of each system, counted: slots through the encoder, and multiply-adds, the vocabulary head included.

A layer costs a slot 12 h^2 multiply-adds (four projections of h x h, a feed-forward part of 4 h), and attention 2 h for
every key that a query is multiplied with, masked or not. Our last layer makes keys and values of all slots (2 h^2) and
goes on with predicted ones alone (12 h^2, their keys and values a second time). Learning costs three times the pass
forward, for every system alike, so that only passes forward are counted.
"""

from __future__ import annotations

from dataclasses import dataclass

OURS, NAIVE, BERT2BERT, CAUSAL = "ours", "naive", "BERT2BERT", "causal BERT"
SYSTEMS = (OURS, NAIVE, BERT2BERT, CAUSAL)


@dataclass(frozen=True)
class Shape:
    """Sizes that all systems share. A prefix is `[CLS] regions [SEP] caption`."""

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
        """Of 64 where the width is a multiple of 64, as in BERT."""
        return self.width // 64 if self.width % 64 == 0 else 4


@dataclass(frozen=True)
class Work:
    """What a question costs: slots through encoder layers, and multiply-adds."""

    slots: float
    multiply_adds: float


def learning(shape: Shape, system: str, questions: int, tokens: int) -> Work:
    """Of one pass forward a question, where an image has `questions` of `tokens` tokens each, the end included."""
    prefix, h = shape.prefix, shape.width
    front = _front(shape) / questions  # made once an image by all but naive, which makes it for every target position
    if system == OURS:
        row = prefix + (2 * tokens - 1) * questions
        slots, layers = row / questions, _narrowing(shape, row, tokens * questions, row) / questions
    elif system == NAIVE:
        passes = [prefix + t for t in range(1, tokens + 1)]
        slots, layers, front = (
            sum(passes),
            shape.layers * sum(_rows(h, row, row) for row in passes),
            tokens * _front(shape),
        )
    elif system == BERT2BERT:
        slots = prefix + tokens
        layers = shape.layers * (_rows(h, prefix, prefix) + _rows(h, tokens, tokens) + _crossing(h, tokens, prefix))
    else:
        slots = prefix + tokens - 1
        layers = shape.layers * _rows(h, slots, slots)
    return Work(slots, front + layers + tokens * _head(shape))


def writing(shape: Shape, system: str, texts: int, tokens: int) -> Work:
    """A text, where `texts` (beams or samples) of `tokens` tokens are written for an image, one after the other."""
    prefix, h = shape.prefix, shape.width
    front, heads = _front(shape) / texts, float(tokens)
    if system == OURS:  # X and the first [MASK] once, then two slots a step, which are multiplied with all texts' keys
        slots = (prefix + 1) / texts + 2 * (tokens - 1)
        layers = _narrowing(shape, prefix + 1, 1, prefix + 1) / texts + sum(
            _narrowing(shape, 2, 1, prefix + texts * t) for t in range(2, tokens + 1)
        )
        heads = tokens - 1 + 1 / texts
    elif system == NAIVE:
        passes = [prefix + t for t in range(1, tokens + 1)]
        slots, layers = sum(passes), shape.layers * sum(_rows(h, row, row) for row in passes)
    elif system == BERT2BERT:  # the encoder once an image; its keys and values once a text
        slots = prefix / texts + tokens
        layers = shape.layers * (
            _rows(h, prefix, prefix) / texts
            + _crossing(h, tokens, prefix)
            + sum(_rows(h, 1, t) for t in range(1, tokens + 1))
        )
    else:  # transformers reads the prompt once a text
        slots = prefix + tokens - 1
        layers = shape.layers * (_rows(h, prefix, prefix) + sum(_rows(h, 1, prefix + t) for t in range(1, tokens)))
    return Work(slots, front + layers + heads * _head(shape))


def _rows(h: int, slots: float, keys: float) -> float:
    """One layer: `slots` that look at `keys` each."""
    return 12 * h * h * slots + 2 * h * slots * keys


def _narrowing(shape: Shape, slots: float, asked: float, keys: float) -> float:
    """All layers: `slots` that look at `keys` each, but in the last layer only those asked for."""
    h = shape.width
    return (shape.layers - 1) * _rows(h, slots, keys) + 2 * h * h * slots + _rows(h, asked, keys)


def _crossing(h: int, slots: float, keys: float) -> float:
    """Cross-attention in one layer: query and output of each slot, key and value of each encoder state."""
    return 2 * h * h * slots + 2 * h * h * keys + 2 * h * slots * keys


def _head(shape: Shape) -> float:
    return shape.width**2 + shape.width * shape.vocabulary


def _front(shape: Shape) -> float:
    """W on the regions of one image."""
    return shape.regions * (shape.features + 4) * shape.width
