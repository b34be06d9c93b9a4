"""VisualBERT's encoder: BERT with larger embedding tables, and late fusion as in the paper's ablation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from mmgen_encoders.attention import additive
from mmgen_encoders.encoder import EncoderBackbone, EncoderCache, visible_keys
from torch import Tensor, nn

from mmgen.attention import Cache
from mmgen.tensors import Encoded, Slots

from . import VisualBert
from .published_weights import as_bert, fusion


class VisualBertBackbone(EncoderBackbone):
    """Regions are at position -1 and have the last two token types.

    With fuse = "late" (`bypass_transformer` of the original code), the encoder's layers read only words; one more
    layer, `fusion`, reads the words' states and the embedded regions.
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
        """Weights of the original code, of transformers' classes, or of plain BERT."""
        tensors = dict(super().published(as_bert(weights)))
        if self.fusion is not None:
            tensors |= {f"fusion.{name}": tensor for name, tensor in fusion(weights).items()}
        return tensors

    @property
    def positions(self) -> nn.Embedding:
        """The position embeddings, with the extra row last."""
        base: Any = self.model.base_model
        table: nn.Embedding = base.embeddings.position_embeddings
        return table

    def attention_masks(self, seen: Tensor, positions: Tensor, key_positions: Tensor) -> Tensor:
        if self.fusion is None:
            return seen
        words, keys = (positions >= 0)[:, None, :, None], (key_positions >= 0)[:, None, None, :]
        return seen & (keys | ~words)  # no word attends to a region; the regions' outputs are not used

    def _encode_rows(self, slots: Slots, cache: Cache | None, output: Sequence[str], more: dict) -> Encoded:
        encoded = super()._encode_rows(slots, cache, output, more)
        if self.fusion is None:
            return encoded
        base: Any = self.model.base_model
        regions = base.embeddings(
            inputs_embeds=slots.states, token_type_ids=slots.types, position_ids=self._rows(slots.positions)
        )
        states = torch.where((slots.positions < 0).unsqueeze(-1), regions, encoded.last)
        keys = slots.layout if cache is None else cache.layout
        assert keys is not None and (cache is None or isinstance(cache, EncoderCache))
        cache_arguments = {} if cache is None else {self.cache_argument: cache.states}
        last, weights = self._fused(states, visible_keys(slots.layout, keys), "attentions" in output, cache_arguments)
        hidden = (*encoded.hidden, last) if encoded.hidden else ()
        return Encoded(last, hidden, (*encoded.attentions, *weights))

    def _fused(self, states: Tensor, seen: Tensor, weigh: bool, cache_arguments: dict) -> tuple[Tensor, list[Tensor]]:
        """Apply the fusion layer to words' states and embedded regions (B, L, H). With `weigh`, also returns its
        attention (B, heads, L, M)."""
        layer: Any = self.fusion
        if not weigh and self.attention == "sdpa":
            return layer(states, attention_mask=seen, **cache_arguments), []
        weights: list[Tensor] = []
        hook = layer.attention.self.register_forward_hook(lambda _, __, output: weights.append(output[1]))
        try:
            with self.eager():
                fused = layer(states, attention_mask=additive(seen, states.dtype), **cache_arguments)
                return fused, weights if weigh else []
        finally:
            hook.remove()

    @property
    def _narrows(self) -> bool:
        return self.fusion is None and super()._narrows
