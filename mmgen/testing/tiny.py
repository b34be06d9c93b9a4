"""The fake backbone `tiny`: a transformer of two layers over words; a short example of the contract."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from ..attention import Cache, visible
from ..configs import BackboneConfig
from ..parts import Backbone
from ..tensors import Encoded, Slots
from .toy import TEXTS

SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]")


class Tiny(BackboneConfig):
    """A transformer of two layers over words, without pretrained weights; embeddings are narrower than states."""

    type: Literal["tiny"] = "tiny"
    embedding: int = Field(12, ge=1, description="width of word embeddings")
    width: int = Field(16, ge=2, multiple_of=2, description="width of states")
    layers: int = Field(2, ge=1, description="layers, of two heads each")
    positions: int = Field(64, ge=8, description="longest row")
    types: int = Field(2, ge=1, description="token types")
    extra_positions: int = Field(0, ge=0, description="extra rows of the table of positions")

    def build(self, texts: Iterable[str] | None = None, folder: Path | None = None) -> TinyBackbone:
        if folder is not None:
            return TinyBackbone(self, json.loads((folder / "words.json").read_text(encoding="utf-8")))
        words = sorted(
            {word for text in (TEXTS if texts is None else texts) for word in text.lower().split()} - set(SPECIAL)
        )
        return TinyBackbone(self, [*SPECIAL, *words])


class WordTokenizer:
    """A tokenizer of words between blanks, with the interface of transformers."""

    all_special_ids = tuple(range(len(SPECIAL)))
    unk_token_id = SPECIAL.index("[UNK]")

    def __init__(self, words: Sequence[str]) -> None:
        self.words, self.ids = tuple(words), {word: number for number, word in enumerate(words)}

    def __len__(self) -> int:
        return len(self.words)

    def __call__(self, text: str | Sequence[str], **options: Any) -> dict[str, Any]:
        token_ids = [
            [self.ids.get(word, self.ids["[UNK]"]) for word in line.lower().split()]
            for line in ([text] if isinstance(text, str) else text)
        ]
        return {"input_ids": token_ids[0] if isinstance(text, str) else token_ids}

    def decode(self, ids: Iterable[int], **options: Any) -> str:
        return " ".join(word for word in self.convert_ids_to_tokens(ids) if word not in SPECIAL)

    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
        return [self.words[number] for number in ids]


class TinyCache(Cache):
    """Keys and values (B, M, H) of every layer."""

    def __init__(self) -> None:
        super().__init__()
        self.states: dict[int, tuple[Tensor, Tensor]] = {}

    def remember(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        if layer in self.states:
            keys, values = (torch.cat(pair, 1) for pair in zip(self.states[layer], (keys, values), strict=True))
        self.states[layer] = keys, values
        return keys, values

    def _change(self, change: Any) -> None:
        super()._change(change)
        self.states = {layer: (change(keys), change(values)) for layer, (keys, values) in self.states.items()}


class TinyLayer(nn.Module):
    """Two heads of attention and a small feed-forward network, each after a norm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.read, self.write = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.think = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, seen: Tensor, number: int, cache: TinyCache | None) -> tuple[Tensor, Tensor]:
        queries, keys, values = self.read(self.norm(x)).chunk(3, -1)  # (B, L, H) each
        if cache is not None:
            keys, values = cache.remember(number, keys, values)
        queries, keys, values = (
            t.unflatten(-1, (2, -1)).transpose(1, 2) for t in (queries, keys, values)
        )  # (B, 2, L or M, H / 2)
        scores = queries @ keys.transpose(-1, -2) / queries.shape[-1] ** 0.5
        attention = scores.masked_fill(~seen.unsqueeze(1), -torch.inf).softmax(-1)  # (B, 2, L, M)
        x = x + self.write((attention @ values).transpose(1, 2).flatten(-2))
        return x + self.think(x), attention


class TinyBackbone(Backbone):
    """See `Tiny`. Word embeddings, projected to the states' width, plus positions and types; with a separate head."""

    caches = True
    pad_id, start_id, end_id, mask_id = range(4)

    def __init__(self, config: Tiny, words: Sequence[str]) -> None:
        super().__init__()
        self.tokenizer = WordTokenizer(words)
        self.input_size, self.hidden_size, self.max_positions = config.embedding, config.width, config.positions
        self.words = nn.Embedding(len(words), config.embedding)
        self.widen = nn.Linear(config.embedding, config.width)
        self.types, self.extra_positions = config.types, config.extra_positions
        self.places = nn.Embedding(config.positions + config.extra_positions, config.width)
        self.kinds = nn.Embedding(config.types, config.width)
        self.layers = nn.ModuleList(TinyLayer(config.width) for _ in range(config.layers))
        self.head = nn.Sequential(nn.LayerNorm(config.width), nn.Linear(config.width, len(words)))

    def embed(self, ids: Tensor) -> Tensor:
        return self.words(ids)

    def seen(self, slots: Slots, cache: Cache | None) -> Tensor:
        """(B, L, M): which slot may see which."""
        return visible(slots.layout, slots.layout if cache is None else cache.grow(slots.layout))

    def encode(self, slots: Slots, cache: Cache | None = None, output: Sequence[str] = ()) -> Encoded:
        seen = self.seen(slots, cache)
        places = slots.positions.where(
            slots.positions >= 0, self.max_positions - 1 - slots.positions
        )  # extra rows last
        x = self.widen(slots.states) + self.places(places) + self.kinds(slots.types)
        hidden, attentions = [x], []
        for number, layer in enumerate(self.layers):
            x, attention = layer(x, seen, number, cache)
            hidden.append(x)
            attentions.append(attention)
        return Encoded(
            x, tuple(hidden) if "hidden" in output else (), tuple(attentions) if "attentions" in output else ()
        )

    def logits(self, states: Tensor) -> Tensor:
        return self.head(states)

    def new_cache(self) -> TinyCache:
        return TinyCache()

    def save(self, folder: Path) -> None:
        (folder / "words.json").write_text(json.dumps(self.tokenizer.words), encoding="utf-8")
