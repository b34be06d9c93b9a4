"""One attention function for every encoder whose layers ask transformers' `AttentionInterface`; its cache.

The function brings mmgen's rule for what sees what, sliding windows, a cache, dropout, and attention weights on demand.
What it needs travels with each call of the encoder as the keyword argument `KEYWORD`; nothing is global, so threads may
share an encoder. Without that argument, somebody called the model itself: it computes what transformers' SDPA does.

A backbone of another class uses it in three steps:

    register()
    model.set_attn_implementation(ATTENTION)
    out = model(inputs_embeds=..., position_ids=..., **{KEYWORD: AttentionCall(seen, positions, key_positions)})
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from mmgen.attention import Cache, padded_length
from mmgen.tensors import taken

ATTENTION = "mmgen"  # the name of `attend` in transformers' AttentionInterface
KEYWORD = "mmgen_call"  # an argument of the encoder, which its layers pass on to their attention


class EncoderCache(Cache):
    """Keys and values of every layer, with the layout and positions of their slots.

    layers     the keys and values (B, heads, M, width) of each layer, in the order in which layers attend
    positions  (B, M)
    """

    def __init__(self) -> None:
        super().__init__()
        self.layers: list[tuple[Tensor, ...]] = []
        self.positions: Tensor | None = None

    def place(self, positions: Tensor) -> Tensor:
        """Store the positions (B, L) of the slots that `grow` adds. Returns the positions of all cached slots."""
        self.positions = positions if self.positions is None else torch.cat([self.positions, positions], 1)
        return self.positions

    def extend(self, layer: int, *states: Tensor) -> tuple[Tensor, ...]:
        """Add the keys and values of a call to those of a layer. Returns all of them, as many as `padded_length` says:
        behind them are copies of a slot, which no slot sees and which are not kept."""
        if layer == len(self.layers):
            self.layers.append(tuple(tensor[:, :, :0] for tensor in states))
        length = self.layers[layer][0].shape[2] + states[0].shape[2]
        copies = padded_length(length, states[0].device) - length
        pairs = zip(self.layers[layer], states, strict=True)
        padded = tuple(torch.cat([old, new, new[:, :, :1].expand(-1, -1, copies, -1)], 2) for old, new in pairs)
        self.layers[layer] = tuple(tensor[:, :, :length] for tensor in padded)
        return padded

    def _change(self, change: Callable[[Tensor], Tensor]) -> None:
        super()._change(change)
        self.positions = None if self.positions is None else change(self.positions)
        self.layers = [tuple(change(t.transpose(1, 2)).transpose(1, 2) for t in layer) for layer in self.layers]

    def rearrange(self, slots: Tensor) -> None:
        order = slots[:, None, :, None]  # in place: X, most of the cache, is not copied
        for tensor in (tensor for layer in self.layers for tensor in layer):
            tail = tensor[:, :, tensor.shape[2] - slots.shape[1] :]
            tail.copy_(tail.gather(2, order.expand(-1, tail.shape[1], -1, tail.shape[3])))


@dataclass(eq=False)
class AttentionCall:
    """One call of an encoder, as its layers' attention needs it.

    seen           (B, 1, L, M) bool, which slot may attend to which (`mmgen.attention.visible`)
    positions      (B, L) of the attending slots; packed rows are not ordered by position
    key_positions  (B, M) of the attended slots, cached slots first
    cache          keys and values of earlier calls; grows by those of this call
    weights        filled with one (B, heads, L, M) for each layer; None: not requested
    predicted      (B, A) slots for which alone the last layer is computed, if `narrow` is its hook; None: for all
    fixed          keys and values in place of the layer's
    layers         number of layers that have attended
    masks          the widths that layers gave -> (B, 1, L, M), what they see as an additive mask
    """

    seen: Tensor
    positions: Tensor
    key_positions: Tensor
    cache: EncoderCache | None = None
    weights: list[Tensor] | None = None
    predicted: Tensor | None = None
    fixed: tuple[Tensor, ...] | None = None
    layers: int = 0
    masks: dict[int | None, Tensor] = field(init=False, default_factory=dict)

    def within(self, width: int | None) -> Tensor:
        """What a layer with this `sliding_window` sees: transformers' keyword is half the window, plus 1. Distance is
        counted in positions, as in a plain row."""
        if width is None:
            return self.seen
        apart = (self.positions.unsqueeze(-1) - self.key_positions.unsqueeze(-2)).abs().unsqueeze(1)
        return self.seen & (apart < width)

    def mask(self, width: int | None, query: Tensor) -> Tensor:
        """What `within` says as numbers to add to scores, in the dtype in which SDPA computes; layers share it."""
        if width not in self.masks:
            kind, seen = query.device.type, self.within(width)
            autocast = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
            dtype = torch.get_autocast_dtype(kind) if autocast else query.dtype
            zeros = torch.zeros(seen.shape, dtype=dtype, device=seen.device)
            self.masks[width] = zeros.masked_fill(~seen, -torch.inf)
        return self.masks[width]

    def remember(self, *states: Tensor) -> tuple[Tensor, ...]:
        """The keys and values of all slots, cached ones first. Layers are told apart by the order of their calls, so
        layers that share one module (ALBERT) have entries each."""
        if self.fixed is not None:
            return self.fixed
        self.layers += 1
        return states if self.cache is None else self.cache.extend(self.layers - 1, *states)

    def narrowed(self, *states: Tensor) -> AttentionCall:
        """The call of the last layer: the predicted slots attend to the keys and values of all slots."""
        assert self.predicted is not None  # asked by `narrow`
        seen, positions = taken(self.seen[:, 0], self.predicted).unsqueeze(1), taken(self.positions, self.predicted)
        return replace(self, seen=seen, positions=positions, fixed=self.remember(*states))


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
    weights (B, heads, L, M) if the call requests them. Rotary positions have been applied to query and key."""
    call: AttentionCall | None = named.get(KEYWORD)
    if call is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, dropout, scaling, **named)
    key, value = call.remember(key, value)
    width = named.get("sliding_window")
    if call.weights is None:
        mask = call.mask(width, query)
        return sdpa_attention_forward(module, query, key, value, mask, dropout, scaling, is_causal=False)
    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scores = query @ key.transpose(2, 3) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    weights = scores.masked_fill(~call.within(width), -torch.inf).softmax(-1, dtype=torch.float32).to(query.dtype)
    call.weights.append(weights)
    return (F.dropout(weights, dropout) @ value).transpose(1, 2).contiguous(), weights


def narrow(layer: Any, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
    """Forward pre-hook of a last layer like BERT's. If the call has `predicted` slots, all slots provide keys and
    values, but only the predicted ones go through queries and the feed-forward part."""
    call: AttentionCall | None = kwargs.get(KEYWORD)
    if call is None or call.predicted is None:
        return None
    (states, *rest), attention = args, layer.attention.self
    heads = (*states.shape[:-1], -1, attention.attention_head_size)
    call = call.narrowed(*(part(states).view(heads).transpose(1, 2) for part in (attention.key, attention.value)))
    assert call.predicted is not None
    return (taken(states, call.predicted), *rest), kwargs | {KEYWORD: call}


def register() -> None:
    """Make `attend` known to transformers, with SDPA's masks. May be called again."""
    AttentionInterface.register(ATTENTION, attend)
    AttentionMaskInterface.register(ATTENTION, sdpa_mask)
