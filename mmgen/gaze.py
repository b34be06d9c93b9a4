"""Where a model looks while it writes: attention from the slot that each token was read off, to every slot it sees.

Nothing here knows a generator or an encoder: the written text is laid out as for learning, so whatever slots predict its
tokens are the ones whose attention is read. Reports and probes use it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .errors import UnavailableError
from .tensors import Batch, Layout


@dataclass(frozen=True)
class Gaze:
    """Of one text: shares of each token's attention, which add up to 1."""

    inputs: Mapping[str, Tensor]  # input name -> (T, N) its real slots
    special: Tensor  # (T,) [CLS], [SEP]
    written: Tensor  # (T,) what was written before, and the slot itself


Way = Callable[[Sequence[Tensor]], Tensor]  # every layer's (B, heads, L, L) -> the (B, L, L) to be read


def last_layer(layers: Sequence[Tensor]) -> Tensor:
    """Mean over the last layer's heads, as in bertgen's figure 2."""
    return layers[-1].float().mean(1)


def all_layers(layers: Sequence[Tensor]) -> Tensor:
    """Mean over all heads of all layers: the last one of a small encoder often looks at little but itself."""
    return torch.stack([layer.float().mean(1) for layer in layers]).mean(0)


def gaze(
    model: Any, batch: Batch, texts: Sequence[Sequence[int]], layer: int = -1, head: int | None = None
) -> list[Gaze]:
    """For B inputs and a text of token ids each. `head`: one of the layer's heads; without it their mean.

    `model` is a `mmgen.model.Model` in eval mode. Raises UnavailableError for a backbone that tells no attention.
    """

    def chosen(layers: Sequence[Tensor]) -> Tensor:
        return layers[layer].float().mean(1) if head is None else layers[layer][:, head].float()

    return gaze_ways(model, batch, texts, {"chosen": chosen})["chosen"]


@torch.inference_mode()
def gaze_ways(
    model: Any, batch: Batch, texts: Sequence[Sequence[int]], ways: Mapping[str, Way]
) -> dict[str, list[Gaze]]:
    """The same, read in several ways from one pass."""
    prefix = model.prefix(batch)
    tail = model.generator.lay_out([[list(text)] for text in texts])
    tail = Batch(batch.ids, {}, tail).to(prefix.states.device).tail
    encoded = model.backbone.encode(prefix.followed_by(model.behind(prefix, tail)), keep=("attentions",))
    if not encoded.attentions:
        raise UnavailableError(f"{type(model.backbone).__name__} does not tell its attention")
    real = {name: model.embedders[name](**collated).mask.sum(1).tolist() for name, collated in batch.inputs.items()}
    length = prefix.positions.shape[1]
    found = {}
    for name, way in ways.items():
        weights = way(encoded.attentions)  # (B, L, L)
        found[name] = []
        for row in range(len(batch.ids)):
            seen = weights[row, _asking(tail.labels[row], tail.layout, row) + length]  # (T, L)
            within = seen[:, :length][:, prefix.layout.real[row]]
            found[name].append(_split(within.cpu(), {part: counts[row] for part, counts in real.items()}))
    return found


def _asking(labels: Tensor, layout: Layout, row: int) -> Tensor:
    """(T,) slots of the tail that predict a token, in the order of the text."""
    slots = (labels != -100).nonzero().squeeze(1)
    return slots[layout.time[row, slots].argsort()]


def _split(within: Tensor, counts: Mapping[str, int]) -> Gaze:
    """(T, real slots of the prefix), which are `[CLS] input [SEP] input`, told apart."""
    inputs, place = {}, 1
    for name, count in counts.items():
        inputs[name] = within[:, place : place + count]
        place += count + 1
    told = sum((weights.sum(1) for weights in inputs.values()), torch.zeros(len(within)))
    return Gaze(inputs, within.sum(1) - told, 1 - within.sum(1))
