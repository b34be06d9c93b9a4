"""The backbone around a masked-language-model encoder of transformers: rows, masks, eager attention, cache, head.

This file is also the adapter to transformers: changes of caches, masks or heads in newer versions are handled here.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer
from transformers.modeling_layers import GradientCheckpointingLayer

from mmgen.attention import Cache, padded_length, visible
from mmgen.errors import PluginError
from mmgen.parts import Backbone
from mmgen.tensors import PAD, Encoded, Layout, Slots, apply, taken

from . import ATTENTION, Encoder
from .attention import KEYWORD, AttentionCall, additive, compute_dtype, register
from .extra_rows import TABLES, extend
from .published_weights import encoder_weights, pooler_weights

PREDICTED = "predicted_slots"  # a keyword argument, passed through the encoder to its last layer


def padded(slots: Slots, length: int) -> Slots:
    """Rows with padding behind them, up to this length."""
    missing = length - slots.positions.shape[1]
    return apply(slots, lambda t: F.pad(t, (*[0, 0] * (t.dim() - 2), 0, missing), value=PAD)) if missing else slots


def visible_keys(queries: Layout, keys: Layout) -> Tensor:
    """(B, 1, L, M) bool, what `mmgen.attention.visible` says of the slots of a cache, and of the copies behind them
    (`PaddedLayer`), which no slot sees."""
    seen = visible(queries, keys).unsqueeze(1)
    copies = padded_length(seen.shape[-1], seen.device) - seen.shape[-1]
    return F.pad(seen, (0, copies)) if copies else seen


class PaddedLayer(DynamicLayer):
    """The cached keys and values of a layer. Attention reads as many as `padded_length` says: behind them are copies of
    a slot, which are not kept."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        assert self.keys is not None and self.values is not None
        length = self.get_seq_length() + key_states.shape[2]
        copies = padded_length(length, key_states.device) - length
        keys, values = (
            torch.cat([before, states, states[:, :, :1].expand(-1, -1, copies, -1)], 2)
            for before, states in ((self.keys, key_states), (self.values, value_states))
        )
        self.keys, self.values = keys[:, :, :length], values[:, :, :length]
        return keys, values


class EncoderCache(Cache):
    """Keys and values in transformers' cache, with the layout and positions of their slots."""

    def __init__(self) -> None:
        super().__init__()
        self.states = DynamicCache()
        self.states.layer_class_to_replicate = PaddedLayer
        self.positions: Tensor | None = None  # (B, M)

    def place(self, positions: Tensor) -> Tensor:
        """Store the positions (B, L) of the slots that `grow` adds. Returns the positions of all cached slots."""
        self.positions = positions if self.positions is None else torch.cat([self.positions, positions], 1)
        return self.positions

    @property
    def _layers(self) -> list[Any]:
        """The cache of each layer that has run, with tensors `keys` and `values` (B, heads, M, width). `Any`, because
        transformers' types include cache layers without them."""
        return self.states.layers

    def _change(self, change: Callable[[Tensor], Tensor]) -> None:
        super()._change(change)
        self.positions = None if self.positions is None else change(self.positions)
        for layer in self._layers:
            layer.keys, layer.values = (change(t.transpose(1, 2)).transpose(1, 2) for t in (layer.keys, layer.values))

    def rearrange(self, slots: Tensor) -> None:
        order = slots[:, None, :, None]  # in place: X, most of the cache, is not copied
        for layer in self._layers:
            for tensor in (layer.keys, layer.values):
                tail = tensor[:, :, tensor.shape[2] - slots.shape[1] :]
                tail.copy_(tail.gather(2, order.expand(-1, tail.shape[1], -1, tail.shape[3])))


def narrow(layer: Any, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
    """Forward pre-hook of the last layer. If the arguments have `PREDICTED` slots (B, A), all slots provide keys and
    values, but only the predicted ones go through queries and the feed-forward part. The encoder's code stays
    unchanged. The slots are an argument of the call, so calls may be nested or run in several threads."""
    if (predicted := kwargs.pop(PREDICTED, None)) is None:
        return None
    name = "cache" if "cache" in kwargs else "past_key_values"  # transformers' before 5.24
    (states, mask, *rest), cache = args, kwargs[name]  # the call of families with `narrows`
    attention = layer.attention.self
    heads = (*states.shape[:-1], -1, attention.attention_head_size)
    keys, values = (
        attention.key(states).view(heads).transpose(1, 2),
        attention.value(states).view(heads).transpose(1, 2),
    )
    if cache is not None:
        keys, values = cache.update(keys, values, attention.layer_idx)
    args = (taken(states, predicted), taken(mask[:, 0], predicted).unsqueeze(1), *rest)
    return args, kwargs | {name: FixedCache(keys, values)}


class FixedCache:
    """A cache with fixed keys and values; `update` ignores its arguments."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        self.keys, self.values = keys, values

    def update(self, keys: Tensor, values: Tensor, *_: object, **__: object) -> tuple[Tensor, Tensor]:
        return self.keys, self.values


class EncoderBackbone(Backbone):
    """A `mmgen.parts.Backbone` around a `...ForMaskedLM` of transformers.

    `model` is that module; it can be taken out, and other weights can be loaded into it. Backbones of other families
    subclass this class; they usually override `attention_masks` and `logits`.

    cache_argument  the name of the encoder's argument for a `DynamicCache`: "cache" since transformers 5.24 where the
                 encoder has it, otherwise "past_key_values"
    read_pooler  reads the pretrained weights of the pooler's dense layer, for a pretrained encoder; the result is empty
                 if the weights have no pooler
    """

    read_pooler: Callable[[], Mapping[str, Tensor]] | None = None

    def __init__(self, config: Encoder, model: PreTrainedModel, tokenizer) -> None:
        super().__init__()
        self.config, self.model, self.tokenizer = config, model, tokenizer
        if config.attention is not None:
            register()
            self._set_attention(config.attention)
        self.caches = config.caches
        words: Any = model.get_input_embeddings()
        sizes: Any = model.config.get_text_config()
        self.input_size, self.hidden_size = words.embedding_dim, sizes.hidden_size
        self.first_position = self._first_position()
        self.max_positions = sizes.max_position_embeddings - self.first_position
        self.start_id, self.end_id = self._delimiters(tokenizer)
        self.mask_id, self.pad_id = tokenizer.mask_token_id, tokenizer.pad_token_id
        self._accepts = frozenset(inspect.signature(model.base_model.forward).parameters)
        self.cache_argument = "cache" if "cache" in self._accepts else "past_key_values"
        positions, types = extend(model, config)
        self.types, self.extra_positions = types if "token_type_ids" in self._accepts else 0, config.extra_positions
        self.first_extra = positions - config.extra_positions  # row of the first extra position in the table
        base: Any = model.base_model
        # in a list, because the layer is already registered in the model
        self._narrowed_layers: list[nn.Module] = [base.encoder.layer[-1]] if config.narrows else []
        for layer in self._narrowed_layers:
            layer.register_forward_pre_hook(narrow, with_kwargs=True)

    def _delimiters(self, tokenizer: Any) -> tuple[int, int]:
        """The tokens that open a row and that end a text."""
        return tokenizer.cls_token_id, tokenizer.sep_token_id

    def _first_position(self) -> int:
        """The row of the position table for position 0."""
        words: Any = self.model.get_input_embeddings()
        first: int = words.padding_idx + 1 if self.config.positions_after_padding else 0
        return first

    def embed(self, ids: Tensor) -> Tensor:
        return self.model.get_input_embeddings()(ids)

    def encode(self, slots: Slots, cache: Cache | None = None, output: Sequence[str] = ()) -> Encoded:
        return self._encode(slots, cache, output, {})

    def attention_masks(self, seen: Tensor, positions: Tensor, key_positions: Tensor) -> Tensor | dict[str, Tensor]:
        """The boolean `attention_mask` for the model: True where a slot attends. By default `seen`.

        seen           (B, 1, L, M) bool, which slot may attend to which
        positions      (B, L) of the attending slots; packed rows are not ordered by position
        key_positions  (B, M) of the attended slots, cached slots first
        A family with sliding-window layers returns narrower masks of the same shape; several masks are a dict with the
        model's names of them.
        """
        return seen

    def _encode(self, slots: Slots, cache: Cache | None, output: Sequence[str], arguments: dict) -> Encoded:
        """`_encode_rows` of rows with a `padded_length`. Rows behind a cache stay as they are, since every step of
        writing has equally many slots."""
        count = slots.positions.shape[1]
        length = padded_length(count, slots.positions.device) if cache is None or not len(cache) else count
        encoded = self._encode_rows(padded(slots, length), cache, output, arguments)
        if cache is not None and length > count:
            cache.forget(length - count)
        if length == count and not encoded.attentions:
            return encoded
        keys = count if cache is None else len(cache)
        return replace(
            encoded,
            last=encoded.last[:, :count],
            hidden=tuple(states[:, :count] for states in encoded.hidden),
            attentions=tuple(weights[:, :, :count, :keys] for weights in encoded.attentions),
        )

    def _encode_rows(self, slots: Slots, cache: Cache | None, output: Sequence[str], arguments: dict) -> Encoded:
        assert cache is None or isinstance(cache, EncoderCache)  # of `new_cache`
        keys = slots.layout if cache is None else cache.grow(slots.layout)
        key_positions = slots.positions if cache is None else cache.place(slots.positions)
        seen = visible_keys(slots.layout, keys)
        if (copies := seen.shape[-1] - key_positions.shape[1]) > 0:
            key_positions = F.pad(key_positions, (0, copies))
        masks = self.attention_masks(seen, slots.positions, key_positions)
        arguments |= {
            "inputs_embeds": slots.states,
            "position_ids": self._rows(slots.positions),
            "output_hidden_states": "hidden" in output,
        }
        if "token_type_ids" in self._accepts:
            arguments["token_type_ids"] = slots.types
        states, weigh = None if cache is None else cache.states, "attentions" in output
        if self.config.attention == ATTENTION:
            assert isinstance(masks, Tensor)  # windows are the function's
            call = AttentionCall(masks, slots.positions, key_positions, states, [] if weigh else None)
            out, attentions = self._attended(arguments, call), tuple(call.weights or ())
        else:
            out, attentions = self._masked(arguments, masks, states, weigh)
        if cache is not None and cache.states.get_seq_length() != len(cache):
            raise PluginError(
                f"{self.config.type} did not fill its cache; set caches = False on {type(self.config).__name__}"
            )
        return Encoded(out.last_hidden_state, tuple(out.hidden_states or ()), attentions)

    def _attended(self, arguments: dict, call: AttentionCall) -> Any:
        """The output of the encoder with `attention.attend`, which gets no mask."""
        if self.attention != ATTENTION:  # set by whoever called the model itself
            self._set_attention(ATTENTION)
        return self.call_model({**arguments, KEYWORD: call})

    def _masked(
        self, arguments: dict, masks: Tensor | dict[str, Tensor], states: DynamicCache | None, weigh: bool
    ) -> tuple[Any, tuple[Tensor, ...]]:
        """The output of the encoder with masks, and its attention weights if requested. SDPA would make an additive
        mask of a boolean one in every layer, so it gets one."""
        eager, states_in = weigh or self.attention == "eager", arguments["inputs_embeds"]
        if eager and self.config.additive_masks:
            masks = apply(masks, lambda mask: additive(mask, states_in.dtype))
        elif not eager and self.attention == "sdpa":
            masks = apply(masks, lambda mask: additive(mask, compute_dtype(states_in)))
        arguments |= {} if states is None else {self.cache_argument: states}
        with self.eager() if eager else contextlib.nullcontext():
            out = self.call_model({**arguments, "attention_mask": masks, "output_attentions": weigh})
        attentions = tuple(out.attentions or ())
        if self.config.attentions_are_scores:
            attentions = tuple(scores.softmax(-1) for scores in attentions)
        return out, attentions

    def call_model(self, arguments: Mapping[str, Any]) -> Any:
        """The output of the encoder: `last_hidden_state`, and `hidden_states` and `attentions` if requested. Override
        it for a model whose `forward` cannot take a mask (B, 1, L, M); the model itself then stays as it is, so
        `source_logits` of a suite can call it.

        arguments  inputs_embeds (B, L, E), position_ids (B, L), output_hidden_states, and, if the model takes them,
                   token_type_ids (B, L). With mmgen's attention function, `attention.KEYWORD`; otherwise attention_mask
                   (`attention_masks`), output_attentions and, with a cache, `cache_argument`
        """
        return self.model.base_model(**arguments)

    def _rows(self, positions: Tensor) -> Tensor:
        """Rows of the encoder's position table for positions (B, L)."""
        rows = positions + self.first_position
        return torch.where(positions < 0, self.first_extra - 1 - positions, rows) if self.extra_positions else rows

    def states_at(self, slots: Slots, mask: Tensor, cache: Cache | None = None) -> Tensor:
        most = int(mask.sum(1).max())
        if not most or not self._narrows:
            return super().states_at(slots, mask, cache)
        most = padded_length(most, mask.device)
        slot_ids = (~mask).int().argsort(dim=1, stable=True)[:, :most]  # (B, A), predicted slots first
        last = self._encode(slots, cache, (), {PREDICTED: slot_ids}).last  # (B, A, H)
        return last[mask.gather(1, slot_ids)]

    @property
    def _narrows(self) -> bool:
        """Whether the layer with the hook is still the last one and is called once; checkpointing calls it twice."""
        layers: Sequence[nn.Module] = getattr(getattr(self.model.base_model, "encoder", None), "layer", ())
        return any(
            len(layers)
            and layer in layers[-1].modules()
            and not (layer.training and getattr(layer, "gradient_checkpointing", False))
            for layer in self._narrowed_layers
        )

    def logits(self, states: Tensor) -> Tensor:
        """The masked-language-model head. Override this for a family whose head is stored elsewhere."""
        model: Any = self.model  # every family has a different name for its head
        if hasattr(model, "generator_predictions"):  # ELECTRA
            return model.generator_lm_head(model.generator_predictions(states))
        if hasattr(model, "vocab_projector"):  # DistilBERT
            return model.vocab_projector(model.vocab_layer_norm(model.activation(model.vocab_transform(states))))
        return head(model)(states)

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The encoder's tensors among published weights, by transformers' names with any prefix. Families with other
        published names override this; they may pass on weights under transformers' names
        (`published_weights.Renamed`)."""
        extra = {key: getattr(self.config, key) for key in TABLES}
        tensors = {f"model.{name}": tensor for name, tensor in encoder_weights(self.model, weights, extra).items()}
        if hasattr(self, "pooler"):
            tensors |= {f"pooler.dense.{name}": tensor for name, tensor in pooler_weights(self.model, weights).items()}
        return tensors

    def add_pooler(self) -> None:
        super().add_pooler()
        if self.read_pooler is not None and (weights := self.read_pooler()):
            self.pooler.get_submodule("dense").load_state_dict(weights)

    def set_gradient_checkpointing(self, enabled: bool) -> None:
        for layer in self._checkpointing_layers():
            layer.gradient_checkpointing = enabled
            layer._gradient_checkpointing_func = partial(checkpoint, use_reentrant=False)

    def _checkpointing_layers(self) -> list[Any]:
        """The layers that transformers can recompute."""
        return [module for module in self.model.modules() if isinstance(module, GradientCheckpointingLayer)]

    def new_cache(self) -> Cache:
        return EncoderCache() if self.caches else super().new_cache()

    def save(self, folder: Path) -> None:
        self.model.config.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def library_weights(self) -> Mapping[str, Tensor]:
        """transformers' weights, without the extra rows of the tables that this class adds."""
        weights: dict[int, tuple[str, Tensor]] = {}  # by identity: a tied head counts once
        for name, tensor in self.model.state_dict(keep_vars=True).items():
            weights.setdefault(id(tensor), (name, tensor))
        extra = {f"{table}.weight": getattr(self.config, key) for key, (table, _) in TABLES.items()}
        return {
            name: tensor[: len(tensor) - rows] if rows else tensor
            for name, tensor in weights.values()
            for rows in (extra.get(".".join(name.split(".")[-2:]), 0),)
        }

    @property
    def attention(self) -> str:
        """The name of transformers' attention that the encoder uses."""
        name: str = self.model.config.get_text_config()._attn_implementation
        return name

    def _set_attention(self, name: str) -> None:
        self.model.set_attn_implementation(name)

    @contextlib.contextmanager
    def eager(self) -> Iterator[None]:
        """Use eager attention, the only one that returns attention weights (with an additive mask)."""
        before = self.attention
        self.model.set_attn_implementation("eager")
        try:
            yield
        finally:
            self.model.set_attn_implementation(before)


def head(model: PreTrainedModel) -> nn.Module:
    """The masked-language-model head, for families whose head is a single module. Raises RuntimeError for others."""
    for name in ("cls", "lm_head", "predictions"):
        if hasattr(model, name):
            return getattr(model, name)
    raise PluginError(f"no masked-language-model head found in {type(model).__name__}; override EncoderBackbone.logits")


def head_transform(backbone: Backbone) -> nn.Module:
    """A copy of the masked-language-model head's transform, the part before the word embeddings: a dense layer, an
    activation and a normalisation; (..., H) -> (..., H). Raises PluginError for backbones without such a head."""
    mlm_head: Any = head(backbone.model) if isinstance(backbone, EncoderBackbone) else None
    if (inside := getattr(getattr(mlm_head, "predictions", mlm_head), "transform", None)) is not None:  # BERT's
        return copy.deepcopy(inside)
    if hasattr(mlm_head, "dense") and hasattr(mlm_head, "layer_norm"):  # RoBERTa's
        return nn.Sequential(copy.deepcopy(mlm_head.dense), nn.GELU(), copy.deepcopy(mlm_head.layer_norm))
    raise PluginError(
        f"{type(backbone).__name__} has no masked-language-model head like BERT's or RoBERTa's to copy the transform "
        "from"
    )
