"""VisualBERT's encoder: BERT's, with larger tables, and late fusion as the paper's ablation has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from mmgen_encoders.encoder import EncoderBackbone, EncoderCache, additive
from torch import Tensor, nn

from mmgen.attention import Cache, visible
from mmgen.tensors import Encoded, Slots

from . import VisualBert
from .names import as_bert, fusion


class VisualBertBackbone(EncoderBackbone):
    """Regions stand at the position -1, in the last two token types.

    With fuse = "late" (`bypass_transformer` of the original code) the encoder's layers see words alone, and `fusion`,
    one more layer, sees their states and the embedded regions.
    """

    config: VisualBert

    def __init__(self, config: VisualBert, model: Any, tokenizer: Any) -> None:
        super().__init__(config, model, tokenizer)
        base: Any = model.base_model
        with torch.no_grad():
            for table, extra in (
                (base.embeddings.token_type_embeddings, config.extra_token_types),
                (base.embeddings.position_embeddings, config.extra_positions),
            ):
                table.weight[-extra:] = table.weight[:extra]
        self.fusion: nn.Module | None = None
        if config.fuse == "late":
            layers = base.encoder.layer
            self.fusion = type(layers[-1])(model.config, layer_idx=len(layers))
            self.fusion.apply(model._init_weights)

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Of the original code, of transformers' classes, or of BERT alone."""
        tensors = dict(super().published(as_bert(weights)))
        if self.fusion is not None:
            tensors |= {f"fusion.{name}": tensor for name, tensor in fusion(weights).items()}
        return tensors

    @property
    def positions(self) -> nn.Embedding:
        """The table of positions, the extra row last."""
        base: Any = self.model.base_model
        table: nn.Embedding = base.embeddings.position_embeddings
        return table

    def attention_masks(self, seen: Tensor, positions: Tensor, key_positions: Tensor) -> Tensor:
        if self.fusion is None:
            return seen
        words, keys = (positions >= 0)[:, None, :, None], (key_positions >= 0)[:, None, None, :]
        return seen & (keys | ~words)  # no word looks at a region; what regions become is not used

    def _encode(self, slots: Slots, cache: Cache | None, output: Sequence[str], more: dict) -> Encoded:
        encoded = super()._encode(slots, cache, output, more)
        if self.fusion is None:
            return encoded
        base: Any = self.model.base_model
        regions = base.embeddings(
            inputs_embeds=slots.states, token_type_ids=slots.types, position_ids=self._rows(slots.positions)
        )
        states = torch.where((slots.positions < 0).unsqueeze(-1), regions, encoded.last)
        keys = slots.layout if cache is None else cache.layout
        assert keys is not None and (cache is None or isinstance(cache, EncoderCache))
        cache_arguments = {} if cache is None else {"past_key_values": cache.states}
        last, weights = self._fused(
            states, visible(slots.layout, keys).unsqueeze(1), "attentions" in output, cache_arguments
        )
        hidden = (*encoded.hidden, last) if encoded.hidden else ()
        return Encoded(last, hidden, (*encoded.attentions, *weights))

    def _fused(self, states: Tensor, seen: Tensor, weigh: bool, cache_arguments: dict) -> tuple[Tensor, list[Tensor]]:
        """Words' states and embedded regions (B, L, H) through the one layer that sees both; and where `weigh`, its
        attention (B, heads, L, M)."""
        layer: Any = self.fusion
        if not weigh and self._attention == "sdpa":
            return layer(states, attention_mask=seen, **cache_arguments), []
        weights: list[Tensor] = []
        hook = layer.attention.self.register_forward_hook(lambda _, __, output: weights.append(output[1]))
        try:
            with self._eager():
                return layer(
                    states, attention_mask=additive(seen, states.dtype), **cache_arguments
                ), weights if weigh else []
        finally:
            hook.remove()

    @property
    def _narrows(self) -> bool:
        return self.fusion is None and super()._narrows
