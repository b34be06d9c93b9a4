"""The backbone around a masked-language-model encoder of transformers: rows, the call of the encoder, head, weights."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_outputs import BaseModelOutputWithPooling

from mmgen.attention import Cache, padded_length, visible
from mmgen.errors import DataError, PluginError
from mmgen.parts import Backbone
from mmgen.tensors import PAD, Encoded, Slots, apply

from . import Encoder
from .attention import ATTENTION, KEYWORD, AttentionCall, EncoderCache, narrow, register
from .extra_rows import added, extend
from .published_weights import encoder_weights, pooler_weights, tensors_by_name

LIKE_BERT = ("bert", "roberta", "xlm-roberta", "camembert", "data2vec-text", "electra", "ernie")  # in their last layer


class EncoderBackbone(Backbone):
    """A `mmgen.parts.Backbone` around a `...ForMaskedLM` of transformers whose attention is `attention.attend`.

    `model` is that module; it can be taken out, and other weights can be loaded into it.

    narrows      whether the last layer is computed for predicted slots only, where nothing else is needed
    read_pooler  reads the pretrained weights of the pooler's dense layer, for a pretrained encoder; the result is empty
                 if the weights have no pooler
    """

    caches = True
    read_pooler: Callable[[], Mapping[str, Tensor]] | None = None

    def __init__(self, config: Encoder, model: PreTrainedModel, tokenizer: Any) -> None:
        super().__init__()
        self.config, self.model, self.tokenizer = config, model, tokenizer
        register()
        self._set_attention(ATTENTION)
        words: Any = model.get_input_embeddings()
        sizes: Any = model.config.get_text_config()
        self.input_size, self.hidden_size = words.embedding_dim, sizes.hidden_size
        # tokenizers made for decoders (EuroBERT's) call them beginning and end of a sequence
        self.start_id = tokenizer.bos_token_id if tokenizer.cls_token_id is None else tokenizer.cls_token_id
        self.end_id = tokenizer.eos_token_id if tokenizer.sep_token_id is None else tokenizer.sep_token_id
        self.mask_id, self.pad_id = tokenizer.mask_token_id, tokenizer.pad_token_id
        self._typed = "token_type_ids" in inspect.signature(model.base_model.forward).parameters
        positions, types = extend(model, config)
        padding, self.extra_positions = positions.padding_idx if positions else None, config.extra_positions
        self.first_position = 0 if padding is None else padding + 1  # after a row for padding, as in RoBERTa
        self.max_positions = sizes.max_position_embeddings - self.first_position
        self.types = types.num_embeddings if types and self._typed else 0
        # row of the first extra position in the table
        self.first_extra = positions.num_embeddings - self.extra_positions if positions else 0
        self.narrows = model.config.model_type in LIKE_BERT
        if self.narrows:
            base: Any = model.base_model
            base.encoder.layer[-1].register_forward_pre_hook(narrow, with_kwargs=True)

    def embed(self, ids: Tensor) -> Tensor:
        return self.model.get_input_embeddings()(ids)

    def encode(self, slots: Slots, cache: Cache | None = None, output: Sequence[str] = ()) -> Encoded:
        return self._encode(slots, cache, output)

    def states_at(self, slots: Slots, mask: Tensor, cache: Cache | None = None) -> Tensor:
        most = int(mask.sum(1).max())
        if not most or not self.narrows:
            return super().states_at(slots, mask, cache)
        most = padded_length(most, mask.device)
        predicted = (~mask).int().argsort(dim=1, stable=True)[:, :most]  # (B, A), predicted slots first
        return self._encode(slots, cache, predicted=predicted).last[mask.gather(1, predicted)]

    def _encode(
        self, slots: Slots, cache: Cache | None, output: Sequence[str] = (), predicted: Tensor | None = None
    ) -> Encoded:
        """Rows are padded to a `padded_length`. Behind a cache they stay as they are, since every step of writing has
        equally many slots."""
        assert cache is None or isinstance(cache, EncoderCache)  # of `new_cache`
        count = slots.positions.shape[1]
        length = padded_length(count, slots.positions.device) if cache is None or not len(cache) else count
        if length > count:
            slots = apply(slots, lambda t: F.pad(t, (*[0, 0] * (t.dim() - 2), 0, length - count), value=PAD))
        keys = slots.layout if cache is None else cache.grow(slots.layout)
        key_positions = slots.positions if cache is None else cache.place(slots.positions)
        seen = visible(slots.layout, keys).unsqueeze(1)
        copies = padded_length(seen.shape[-1], seen.device) - seen.shape[-1]  # of `EncoderCache.extend`
        seen, key_positions = F.pad(seen, (0, copies)), F.pad(key_positions, (0, copies))
        weights: list[Tensor] | None = [] if "attentions" in output else None
        call = AttentionCall(seen, slots.positions, key_positions, cache, weights, predicted)
        arguments: dict[str, Any] = {
            "inputs_embeds": slots.states,
            "position_ids": self._rows(slots.positions),
            "output_hidden_states": "hidden" in output,
        }
        if self._typed:
            arguments["token_type_ids"] = slots.types
        if self.model.config.get_text_config()._attn_implementation != ATTENTION:  # set by whoever called the model
            self._set_attention(ATTENTION)
        out = self.call_model(arguments, call)
        if cache is not None and length > count:
            cache.forget(length - count)
        shown = count if cache is None else len(cache)
        return Encoded(
            out.last_hidden_state[:, :count],
            tuple(states[:, :count] for states in out.hidden_states or ()),
            tuple(layer[:, :, :count, :shown] for layer in weights or ()),
        )

    def call_model(self, arguments: Mapping[str, Any], call: AttentionCall) -> Any:
        """The output of the encoder: `last_hidden_state`, and `hidden_states` if requested. Override it for a model
        whose `forward` needs something else; the model itself then stays as it is, so `source_logits` of a suite can
        call it.

        arguments  inputs_embeds (B, L, E), position_ids (B, L), output_hidden_states, and, if the model takes them,
                   token_type_ids (B, L)
        """
        return self.model.base_model(**arguments, **{KEYWORD: call})

    def _rows(self, positions: Tensor) -> Tensor:
        """Rows of the encoder's position table for positions (B, L)."""
        rows = positions + self.first_position
        return torch.where(positions < 0, self.first_extra - 1 - positions, rows) if self.extra_positions else rows

    def logits(self, states: Tensor) -> Tensor:
        """The masked-language-model head. Override this for a family whose head reads more than states."""
        rows = states.reshape(1, -1, states.shape[-1])
        logits: Tensor = head_alone(self.model)(inputs_embeds=rows).logits
        return logits.reshape(*states.shape[:-1], logits.shape[-1])

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The encoder's tensors among published weights, by transformers' names with any prefix. Families with other
        published names override this; they may pass on weights under transformers' names
        (`published_weights.Renamed`)."""
        encoder = encoder_weights(self.model, weights, added(self.config))
        tensors = {f"model.{name}": tensor for name, tensor in encoder.items()}
        if hasattr(self, "pooler"):
            tensors |= {f"pooler.dense.{name}": tensor for name, tensor in pooler_weights(self.model, weights).items()}
        return tensors

    def add_pooler(self) -> None:
        super().add_pooler()
        if self.read_pooler is not None and (weights := self.read_pooler()):
            self.pooler.get_submodule("dense").load_state_dict(weights)

    def set_gradient_checkpointing(self, enabled: bool) -> None:
        layers: list[Any] = [layer for layer in self.model.modules() if isinstance(layer, GradientCheckpointingLayer)]
        if enabled and not layers:
            raise DataError(
                f"transformers cannot recompute the layers of '{self.model.config.model_type}'; remove "
                "training.gradient_checkpointing"
            )
        for layer in layers:
            layer.gradient_checkpointing = enabled
            layer._gradient_checkpointing_func = partial(checkpoint, use_reentrant=False)

    def new_cache(self) -> Cache:
        return EncoderCache()

    def save(self, folder: Path) -> None:
        self.model.config.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def library_weights(self) -> Mapping[str, Tensor]:
        """transformers' weights, without the extra rows of the tables that this class adds."""
        extra = added(self.config)
        return {
            name: tensor[: len(tensor) - rows] if rows else tensor
            for name, (tensor, _) in tensors_by_name(self.model).items()
            for rows in (extra.get(".".join(name.split(".")[-2:]), 0),)
        }

    def _set_attention(self, name: str) -> None:
        self.model.set_attn_implementation(name)


class _Given(nn.Module):
    """Stands where the encoder is: its states are what it is given."""

    def forward(self, *_: Any, inputs_embeds: Tensor, **__: Any) -> BaseModelOutputWithPooling:
        return BaseModelOutputWithPooling(last_hidden_state=inputs_embeds)


def head_alone(model: PreTrainedModel) -> PreTrainedModel:
    """The model without its encoder: called with states (B, L, H) as `inputs_embeds`, its own code turns them into
    logits (B, L, V), whatever stands before the output embeddings. Shares all parameters with the model. Raises
    PluginError for a model without output embeddings."""
    if model.get_output_embeddings() is None or model.base_model is model:
        raise PluginError(f"no masked-language-model head found in {type(model).__name__}")
    alone = copy.copy(model)
    alone._modules = {**model._modules, model.base_model_prefix: _Given()}
    return alone


def head_transform(backbone: Backbone) -> nn.Module:
    """A copy of the masked-language-model head's transform, the part before the word embeddings: a dense layer, an
    activation and a normalisation; (..., H) -> (..., H). Raises PluginError for backbones without such a head."""
    parts = dict(backbone.named_modules())
    if (transform := parts.get("model.cls.predictions.transform")) is not None:  # BERT's
        return copy.deepcopy(transform)
    dense, norm = (copy.deepcopy(parts.get(f"model.lm_head.{name}")) for name in ("dense", "layer_norm"))
    if dense is None or norm is None:
        raise PluginError(
            f"{type(backbone).__name__} has no masked-language-model head like BERT's or RoBERTa's to copy the "
            "transform from"
        )
    return nn.Sequential(dense, nn.GELU(), norm)  # RoBERTa's
