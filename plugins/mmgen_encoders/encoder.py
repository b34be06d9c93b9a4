"""One backbone around any masked-language-model encoder of transformers: what differs between families is found here.

This is also the adapter to transformers: what a newer version changes about caches, masks or heads is mended here.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import DynamicCache, PreTrainedModel

from mmgen.attention import Cache, visible
from mmgen.errors import PluginError
from mmgen.parts import Backbone
from mmgen.tensors import Encoded, Slots, apply, taken

from . import Encoder
from .names import encoder_weights, pooler_weights
from .rows import TABLES, extend

ASKED = "asked_slots"  # a keyword that travels through the encoder to its last layer


class EncoderCache(Cache):
    """Keys and values in transformers' own cache, kept in step with their layout and their positions."""

    def __init__(self) -> None:
        super().__init__()
        self.states = DynamicCache()
        self.positions: Tensor | None = None  # (B, M)

    def place(self, positions: Tensor) -> Tensor:
        """Remember the positions (B, L) of slots that `grow` takes; those of all slots that are remembered now."""
        self.positions = positions if self.positions is None else torch.cat([self.positions, positions], 1)
        return self.positions

    @property
    def _layers(self) -> list[Any]:
        """One for each layer that has run. Their `keys` and `values` are tensors (B, heads, M, width); the types of
        transformers know of other layers too, which have none."""
        return self.states.layers

    def _change(self, change: Callable[[Tensor], Tensor]) -> None:
        super()._change(change)
        self.positions = None if self.positions is None else change(self.positions)
        for layer in self._layers:
            layer.keys, layer.values = (change(t.transpose(1, 2)).transpose(1, 2) for t in (layer.keys, layer.values))

    def rearrange(self, slots: Tensor) -> None:
        order = slots[:, None, :, None]  # in place: X, most of what is kept, is not touched
        for layer in self._layers:
            for kept in (layer.keys, layer.values):
                last = kept[:, :, kept.shape[2] - slots.shape[1] :]
                last.copy_(last.gather(2, order.expand(-1, last.shape[1], -1, last.shape[3])))


def narrow(layer: Any, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
    """Before the last layer: where `ASKED` slots (B, A) come among the arguments, all slots give the layer keys and
    values, but only those go on through its queries and its feed-forward part. A hook, so that the encoder's own code
    stays whole; what it is to do comes with the call, so that calls may be nested or in several threads."""
    if (asked := kwargs.pop(ASKED, None)) is None:
        return None
    (states, mask, *others), cache = args, kwargs["past_key_values"]  # as the families that narrow call their layers
    attention = layer.attention.self
    heads = (*states.shape[:-1], -1, attention.attention_head_size)
    keys, values = (
        attention.key(states).view(heads).transpose(1, 2),
        attention.value(states).view(heads).transpose(1, 2),
    )
    if cache is not None:
        keys, values = cache.update(keys, values, attention.layer_idx)
    args = (taken(states, asked), taken(mask[:, 0], asked).unsqueeze(1), *others)
    return args, kwargs | {"past_key_values": Known(keys, values)}


class Known:
    """In a cache's place: keys and values that are there already, whatever comes."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        self.keys, self.values = keys, values

    def update(self, keys: Tensor, values: Tensor, *_: object, **__: object) -> tuple[Tensor, Tensor]:
        return self.keys, self.values


class EncoderBackbone(Backbone):
    """A `...ForMaskedLM` of transformers as `mmgen.parts.Backbone` describes it.

    `model` is that very module: take it out, or put another's weights in, as you like. Backbones of other families
    subclass this one; what differs most is `attention_masks` and where `logits` finds the head.

    read_pooler  gives the pretrained weights of the pooler's dense layer, where the encoder's weights are pretrained;
                 empty where these have no pooler
    """

    read_pooler: Callable[[], Mapping[str, Tensor]] | None = None

    def __init__(self, config: Encoder, model: PreTrainedModel, tokenizer) -> None:
        super().__init__()
        self.config, self.model, self.tokenizer = config, model, tokenizer
        self.caches = config.caches
        words: Any = model.get_input_embeddings()
        self.input_size, self.hidden_size = words.embedding_dim, model.config.hidden_size
        self.first_position = words.padding_idx + 1 if config.positions_after_padding else 0
        self.max_positions = model.config.max_position_embeddings - self.first_position
        self.start_id, self.end_id = tokenizer.cls_token_id, tokenizer.sep_token_id
        self.mask_id, self.pad_id = tokenizer.mask_token_id, tokenizer.pad_token_id
        self._accepts = frozenset(inspect.signature(model.base_model.forward).parameters)
        places, types = extend(model, config)
        self.types, self.extra_positions = types if "token_type_ids" in self._accepts else 0, config.extra_positions
        self.first_extra = places - config.extra_positions  # its row in the table of positions
        base: Any = model.base_model
        # in a list: it is the model's module
        self._narrowing: list[nn.Module] = [base.encoder.layer[-1]] if config.narrows else []
        for layer in self._narrowing:
            layer.register_forward_pre_hook(narrow, with_kwargs=True)

    def embed(self, ids: Tensor) -> Tensor:
        return self.model.get_input_embeddings()(ids)

    def encode(self, slots: Slots, cache: Cache | None = None, output: Sequence[str] = ()) -> Encoded:
        return self._encode(slots, cache, output, {})

    def attention_masks(self, seen: Tensor, positions: Tensor, key_positions: Tensor) -> Tensor | dict[str, Tensor]:
        """What the model is handed as its `attention_mask`, boolean: True where a slot looks. By default `seen` itself.

        seen           (B, 1, L, M) bool, who may look at whom
        positions      (B, L) of the slots that look; packed rows are not in their order
        key_positions  (B, M) of those looked at, the ones in the cache first
        A family whose layers look over a window gives narrower masks, of the same shape. Several are a dict, under the
        names that the model knows them by.
        """
        return seen

    def _encode(self, slots: Slots, cache: Cache | None, output: Sequence[str], more: dict) -> Encoded:
        assert cache is None or isinstance(cache, EncoderCache)  # of `new_cache`
        keys = slots.layout if cache is None else cache.grow(slots.layout)
        key_positions = slots.positions if cache is None else cache.place(slots.positions)
        masks = self.attention_masks(visible(slots.layout, keys).unsqueeze(1), slots.positions, key_positions)
        more |= {} if cache is None else {"past_key_values": cache.states}
        if "token_type_ids" in self._accepts:
            more["token_type_ids"] = slots.types
        eager = "attentions" in output or self._attention != "sdpa"
        with self._eager() if eager else contextlib.nullcontext():
            out = self.model.base_model(
                inputs_embeds=slots.states,
                attention_mask=apply(masks, lambda mask: additive(mask, slots.states.dtype)) if eager else masks,
                position_ids=self._rows(slots.positions),
                output_hidden_states="hidden" in output,
                output_attentions="attentions" in output,
                **more,
            )
        if cache is not None and cache.states.get_seq_length() != len(cache):
            raise RuntimeError(f"{self.config.type} did not fill the cache it was handed")
        attentions = tuple(out.attentions or ())
        if self.config.attentions_are_scores:
            attentions = tuple(scores.softmax(-1) for scores in attentions)
        return Encoded(out.last_hidden_state, tuple(out.hidden_states or ()), attentions)

    def _rows(self, positions: Tensor) -> Tensor:
        """Positions (B, L) as rows of the encoder's table."""
        own = positions + self.first_position
        return torch.where(positions < 0, self.first_extra - 1 - positions, own) if self.extra_positions else own

    def states_at(self, slots: Slots, mask: Tensor, cache: Cache | None = None) -> Tensor:
        most = int(mask.sum(1).max())
        if not most or not self._narrows:
            return super().states_at(slots, mask, cache)
        places = (~mask).int().argsort(dim=1, stable=True)[:, :most]  # (B, A), those asked for first
        last = self._encode(slots, cache, (), {ASKED: places}).last  # (B, A, H)
        return last[mask.gather(1, places)]

    @property
    def _narrows(self) -> bool:
        """Whether the layer with the hook is there, is still the last one, and is called once: checkpointing calls it
        again."""
        layers: Sequence[nn.Module] = getattr(getattr(self.model.base_model, "encoder", None), "layer", ())
        return any(
            len(layers)
            and layer in layers[-1].modules()
            and not (layer.training and getattr(layer, "gradient_checkpointing", False))
            for layer in self._narrowing
        )

    def logits(self, states: Tensor) -> Tensor:
        """The masked-language-model head. Override it for a family that keeps its head elsewhere."""
        model: Any = self.model  # every family calls its head otherwise
        if hasattr(model, "generator_predictions"):  # ELECTRA
            return model.generator_lm_head(model.generator_predictions(states))
        if hasattr(model, "vocab_projector"):  # DistilBERT
            return model.vocab_projector(model.vocab_layer_norm(model.activation(model.vocab_transform(states))))
        return head(model)(states)

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """By transformers' names, and by those that others made of them. Families whose publishers have names of their
        own override it; they may hand weights on by transformers' names."""
        extra = {key: getattr(self.config, key) for key in TABLES}
        found = {f"model.{name}": each for name, each in encoder_weights(self.model, weights, extra).items()}
        if hasattr(self, "pooler"):
            found |= {f"pooler.dense.{name}": each for name, each in pooler_weights(self.model, weights).items()}
        return found

    def add_pooler(self) -> None:
        super().add_pooler()
        if self.read_pooler is not None and (weights := self.read_pooler()):
            self.pooler.get_submodule("dense").load_state_dict(weights)

    def new_cache(self) -> Cache:
        return EncoderCache() if self.caches else super().new_cache()

    def save(self, folder: Path) -> None:
        self.model.config.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    @property
    def _attention(self) -> str:
        return self.model.config._attn_implementation

    @contextlib.contextmanager
    def _eager(self) -> Iterator[None]:
        """Attention weights are only computed by the eager attention (and it wants a mask that is added)."""
        before = self._attention
        self.model.set_attn_implementation("eager")
        try:
            yield
        finally:
            self.model.set_attn_implementation(before)


def additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """A boolean mask as numbers to add to attention scores: the eager attention would add True as 1, without a word."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, torch.finfo(dtype).min)


def head(model: PreTrainedModel) -> nn.Module:
    """The masked-language-model head as one module, where the family keeps it in one."""
    for name in ("cls", "lm_head", "predictions"):
        if hasattr(model, name):
            return getattr(model, name)
    raise RuntimeError(
        f"no masked-language-model head found in {type(model).__name__}; override EncoderBackbone.logits"
    )


def head_transform(backbone: Backbone) -> nn.Module:
    """A copy of what the masked-language-model head does to states before it compares them with words: a dense layer,
    an activation, a normalisation; (..., H) -> (..., H). Raises PluginError for a backbone that keeps it elsewhere."""
    own: Any = head(backbone.model) if isinstance(backbone, EncoderBackbone) else None
    if (inside := getattr(getattr(own, "predictions", own), "transform", None)) is not None:  # BERT's
        return copy.deepcopy(inside)
    if hasattr(own, "dense") and hasattr(own, "layer_norm"):  # RoBERTa's
        return nn.Sequential(copy.deepcopy(own.dense), nn.GELU(), copy.deepcopy(own.layer_norm))
    raise PluginError(
        f"{type(backbone).__name__} has no masked-language-model head of BERT's or RoBERTa's form to copy from"
    )
