"""The fake backbone `tiny`: a transformer of two layers over words; a short example of the contract."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import WhitespaceSplit
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast

from ..attention import Cache, visible
from ..configs import BackboneConfig
from ..parts import Backbone
from ..tensors import Encoded, Slots
from .toy import TEXTS

SPECIAL = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "cls", "sep", "mask", "unk")}


class Tiny(BackboneConfig):
    """A transformer of two layers over words, without pretrained weights; embeddings are narrower than states."""

    type: Literal["tiny"] = "tiny"
    embedding: int = Field(12, ge=1, description="width of word embeddings")
    width: int = Field(16, ge=2, multiple_of=2, description="width of states, which two heads share")
    positions: int = Field(64, ge=8, description="longest row")
    types: int = Field(2, ge=1, description="token types")
    extra_positions: int = Field(0, ge=0, description="extra rows of the table of positions")

    def build(self, texts: Iterable[str] | None = None, folder: Path | None = None) -> TinyBackbone:
        if folder is not None:
            return TinyBackbone(self, PreTrainedTokenizerFast.from_pretrained(folder))
        words = {word for text in (TEXTS if texts is None else texts) for word in text.lower().split()}
        ids = {word: number for number, word in enumerate([*SPECIAL.values(), *sorted(words - {*SPECIAL.values()})])}
        tokenizer = Tokenizer(WordLevel(ids, "[UNK]"))
        tokenizer.normalizer, tokenizer.pre_tokenizer = Lowercase(), WhitespaceSplit()
        return TinyBackbone(self, PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL))


class TinyCache(Cache):
    """What every layer has read (B, M, H)."""

    def __init__(self) -> None:
        super().__init__()
        self.states: dict[nn.Module, Tensor] = {}

    def remember(self, layer: nn.Module, states: Tensor) -> Tensor:
        """Adds new states, and returns all of a layer."""
        self.states[layer] = torch.cat([self.states.get(layer, states[:, :0]), states], 1)
        return self.states[layer]

    def _change(self, change: Any) -> None:
        super()._change(change)
        self.states = {layer: change(states) for layer, states in self.states.items()}


class TinyLayer(nn.Module):
    """Two heads of attention and a small feed-forward network, each after a norm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(width), nn.MultiheadAttention(width, 2, batch_first=True)
        sizes = nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        self.think = nn.Sequential(nn.LayerNorm(width), *sizes)

    def forward(self, x: Tensor, seen: Tensor, cache: TinyCache | None) -> tuple[Tensor, Tensor]:
        read, unseen = self.norm(x), ~seen.repeat_interleave(2, 0)  # (2 B, L, M)
        known = read if cache is None else cache.remember(self, read)
        mixed, weights = self.attention(read, known, known, attn_mask=unseen, average_attn_weights=False)
        x = x + mixed
        return x + self.think(x), weights  # (B, 2, L, M)


class TinyBackbone(Backbone):
    """See `Tiny`. Word embeddings, projected to the states' width, plus positions and types; with a separate head."""

    caches = True
    pad_id, start_id, end_id, mask_id = range(4)

    def __init__(self, config: Tiny, tokenizer: PreTrainedTokenizerFast) -> None:
        super().__init__()
        self.tokenizer, words = tokenizer, len(tokenizer)
        self.input_size, self.hidden_size, self.max_positions = config.embedding, config.width, config.positions
        self.words = nn.Embedding(words, config.embedding)
        self.widen = nn.Linear(config.embedding, config.width)
        self.types, self.extra_positions = config.types, config.extra_positions
        self.places = nn.Embedding(config.positions + config.extra_positions, config.width)
        self.kinds = nn.Embedding(config.types, config.width)
        self.layers = nn.ModuleList(TinyLayer(config.width) for _ in range(2))
        self.head = nn.Sequential(nn.LayerNorm(config.width), nn.Linear(config.width, words))

    def embed(self, ids: Tensor) -> Tensor:
        return self.words(ids)

    def seen(self, slots: Slots, cache: Cache | None) -> Tensor:
        """(B, L, M): which slot may see which."""
        return visible(slots.layout, slots.layout if cache is None else cache.grow(slots.layout))

    def encode(self, slots: Slots, cache: Cache | None = None, output: Sequence[str] = ()) -> Encoded:
        seen, position = self.seen(slots, cache), slots.positions
        places = position.where(position >= 0, self.max_positions - 1 - position)  # extra rows last
        hidden, attentions = [self.widen(slots.states) + self.places(places) + self.kinds(slots.types)], []
        for layer in self.layers:
            x, attention = layer(hidden[-1], seen, cache)
            hidden.append(x)
            attentions.append(attention)
        return Encoded(hidden[-1], tuple(hidden), tuple(attentions))

    def logits(self, states: Tensor) -> Tensor:
        return self.head(states)

    def new_cache(self) -> TinyCache:
        return TinyCache()

    def save(self, folder: Path) -> None:
        self.tokenizer.save_pretrained(folder)
