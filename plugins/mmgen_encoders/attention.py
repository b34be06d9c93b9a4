"""One attention function for every encoder whose layers ask transformers' `AttentionInterface`.

The function brings mmgen's rule for what sees what, sliding windows, a cache, dropout, and attention weights on demand.
No mask function is registered under its name, so transformers builds no mask. What the function needs travels with
each call of the encoder as the keyword argument `KEYWORD`; nothing is global, so threads may share an encoder.

A backbone of another class uses it in three steps:

    register()
    model.set_attn_implementation(ATTENTION)
    out = model(inputs_embeds=..., position_ids=..., **{KEYWORD: AttentionCall(seen, positions, key_positions)})

A backbone that subclasses `encoder.EncoderBackbone` sets `attention = ATTENTION` on its config class instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface, DynamicCache, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from mmgen.errors import PluginError

from . import ATTENTION

KEYWORD = "mmgen_call"  # an argument of the encoder, which its layers pass on to their attention


@dataclass(eq=False)
class AttentionCall:
    """One call of an encoder, as its layers' attention needs it.

    seen           (B, 1, L, M) bool, which slot may attend to which (`mmgen.attention.visible`)
    positions      (B, L) of the attending slots; packed rows are not ordered by position
    key_positions  (B, M) of the attended slots, cached slots first
    cache          keys and values of earlier calls, by the order in which layers attend; grows by those of this call
    weights        filled with one (B, heads, L, M) for each layer; None: not requested
    windows        the widths that sliding layers gave -> (B, 1, L, M) bool, what they see
    masks          the widths that layers gave -> (B, 1, L, M), what they see as an additive mask
    """

    seen: Tensor
    positions: Tensor
    key_positions: Tensor
    cache: DynamicCache | None = None
    weights: list[Tensor] | None = None
    windows: dict[int, Tensor] = field(default_factory=dict)
    masks: dict[int | None, Tensor] = field(default_factory=dict)
    layers: int = 0  # that have attended, with a cache

    def within(self, width: int | None) -> Tensor:
        """What a layer with this `sliding_window` sees: transformers' keyword is half the window, plus 1. Distance is
        counted in positions, as in a plain row."""
        if width is None:
            return self.seen
        if width not in self.windows:
            apart = (self.positions.unsqueeze(-1) - self.key_positions.unsqueeze(-2)).abs().unsqueeze(1)
            self.windows[width] = self.seen & (apart < width)
        return self.windows[width]

    def mask(self, width: int | None, dtype: torch.dtype) -> Tensor:
        """What `within` says, as an additive mask, which all layers of the same width share."""
        if width not in self.masks:
            self.masks[width] = additive(self.within(width), dtype)
        return self.masks[width]

    def remember(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """The keys and values of all slots, cached ones first. Layers are told apart by the order of their calls, so
        layers that share one module (ALBERT) have entries each."""
        if self.cache is None:
            return key, value
        self.layers += 1
        return self.cache.update(key, value, self.layers - 1)


def additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """A boolean mask as numbers to add to attention scores; eager attention would silently add True as 1."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, -torch.inf)


def compute_dtype(states: Tensor) -> torch.dtype:
    """The dtype in which attention computes, of states or queries."""
    kind = states.device.type
    autocast = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    return torch.get_autocast_dtype(kind) if autocast else states.dtype


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **named: Any,
) -> tuple[Tensor, Tensor | None]:
    """Attention of one layer: query (B, heads, L, D), key and value (B, key heads, L, D) -> (B, L, heads, D), and the
    weights (B, heads, L, M) if the call requests them. Rotary positions have been applied to query and key. Raises
    PluginError for an encoder that is called without `KEYWORD`, since its padding would be seen."""
    call: AttentionCall | None = named.get(KEYWORD)
    if call is None:
        raise PluginError(
            f"{type(module).__name__} was called without mmgen's layout; call `Backbone.encode`, or "
            'model.set_attn_implementation("sdpa") before calling the model itself'
        )
    key, value = call.remember(key, value)
    width = named.get("sliding_window")
    if call.weights is None:
        mask = call.mask(width, compute_dtype(query))
        return sdpa_attention_forward(module, query, key, value, mask, dropout, scaling, is_causal=False)
    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scores = query @ key.transpose(2, 3) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    weights = scores.masked_fill(~call.within(width), -torch.inf).softmax(-1, dtype=torch.float32).to(query.dtype)
    call.weights.append(weights)
    return (F.dropout(weights, dropout) @ value).transpose(1, 2).contiguous(), weights


def register() -> None:
    """Make `attend` known to transformers, without a mask function. May be called again."""
    AttentionInterface.register(ATTENTION, attend)


@contextmanager
def transformers_attention(model: PreTrainedModel) -> Iterator[None]:
    """Use one of transformers' own attention functions meanwhile, so that the model itself can be called. Not for
    models that other threads use."""
    before: str = model.config._attn_implementation
    model.set_attn_implementation("sdpa" if model._supports_sdpa else "eager")
    try:
        yield
    finally:
        model.set_attn_implementation(before)
