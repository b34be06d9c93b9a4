"""VisualBERT's encoder: BERT with larger embedding tables, and late fusion as in the paper's ablation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from mmgen_encoders.attention import KEYWORD, AttentionCall
from mmgen_encoders.encoder import EncoderBackbone
from torch import Tensor, nn

from . import VisualBert
from .published_weights import as_bert, fusion


class VisualBertBackbone(EncoderBackbone):
    """Regions are at position -1 and have the last two token types.

    With fuse = "late" (`bypass_transformer` of the original code), the encoder's layers read only words; one more
    layer, `fusion`, reads the words' states and the embedded regions.
    """

    config: VisualBert
    model: Any

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
            self.narrows = False
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
        table: nn.Embedding = self.model.base_model.embeddings.position_embeddings
        return table

    def call_model(self, arguments: Mapping[str, Any], call: AttentionCall) -> Any:
        if self.fusion is None:
            return super().call_model(arguments, call)
        region, region_key = call.positions < 0, call.key_positions < 0
        # no word attends to a region; the regions' outputs are not used
        seen = call.seen & ~(region_key[:, None, None] & ~region[:, None, :, None])
        out = super().call_model(arguments, replace(call, seen=seen))
        names = ("inputs_embeds", "token_type_ids", "position_ids")
        regions = self.model.base_model.embeddings(**{name: arguments[name] for name in names})
        states = torch.where(region.unsqueeze(-1), regions, out.last_hidden_state)
        call.layers = self.model.config.num_hidden_layers
        out.last_hidden_state = self.fusion(states, **{KEYWORD: call})
        if out.hidden_states:
            out.hidden_states = (*out.hidden_states, out.last_hidden_state)
        return out
