"""Reads texts and embeds them with the backbone's word embeddings (bertgen, section 3: captions are subwords)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from mmgen.errors import DataError
from mmgen.examples import ResolvedExample
from mmgen.parts import Backbone, Embedder, Reader
from mmgen.tensors import Hiding, Segment
from mmgen.tokens import estimate_tokens

from . import Text

MAX_CACHED_TEXTS = 300_000  # texts with cached tokens


class TextReader(Reader):
    """Tokenises texts in the loader's workers, with a cache, since texts repeat every epoch."""

    hides = "words"

    def __init__(self, config: Text, backbone: Backbone) -> None:
        self.fields, self.max_tokens = config.fields, config.max_tokens
        self.encode, self.pad_id, self.mask_id = backbone.text_encoder, backbone.pad_id, backbone.mask_id
        self.tokenizer = backbone.tokenizer
        self.suffix = [backbone.mask_id] if config.append_mask else []
        self._cache: dict[str, list[int]] = {}

    @property
    def field(self) -> str:
        """The first field of the text."""
        return self.fields[0]

    def text(self, example: ResolvedExample) -> str:
        """The texts of all fields, joined by spaces. Raises DataError if the example lacks a field."""
        for field in self.fields:
            if not isinstance(example.inputs.get(field), str):
                raise DataError(
                    f"example '{example.id}' has no {field}; its inputs are: {', '.join(example.inputs) or 'none'}",
                )
        return " ".join(example.inputs[field] for field in self.fields)

    def read(self, example: ResolvedExample) -> Tensor:
        return torch.tensor(self._tokenise(self.text(example)) + self.suffix, dtype=torch.long)

    def _tokenise(self, text: str) -> list[int]:
        if text not in self._cache:
            if len(self._cache) >= MAX_CACHED_TEXTS:
                self._cache.clear()
            self._cache[text] = self.encode([text])[0][: self.max_tokens]
        return self._cache[text]

    def hide(self, item: Tensor, draw: random.Random, hiding: Hiding) -> tuple[Tensor, Tensor]:
        """Hide a share of the tokens (N,). Returns the ids (N,) and the labels (N,): the original ids of hidden tokens,
        -100 elsewhere. The appended [MASK] is never predicted."""
        ids, labels = item.clone(), torch.full_like(item, -100)
        token_ids = item[: len(item) - len(self.suffix)].tolist()
        words = self._tokens_by_word(token_ids) if hiding.whole_words else [[index] for index in range(len(token_ids))]
        masked_share, random_share = hiding.replace
        for word in [word for word in words if draw.random() < hiding.rate]:
            number = draw.random()
            for index in word:
                labels[index] = item[index]
                if number < masked_share:
                    ids[index] = self.mask_id
                elif number < masked_share + random_share:
                    ids[index] = draw.choice(self._ordinary_ids)
        return ids, labels

    def _tokens_by_word(self, ids: Sequence[int]) -> list[list[int]]:
        """Indices of the tokens, grouped by word."""
        words: list[list[int]] = []
        for index, token in enumerate(self.tokenizer.convert_ids_to_tokens(list(ids))):
            if words and self._continues_word(token):
                words[-1].append(index)
            else:
                words.append([index])
        return words

    def _continues_word(self, token: str) -> bool:
        """Whether a token continues the previous word. WordPiece marks continuations ("##s"); byte-level BPE and
        SentencePiece mark tokens that begin a word."""
        return not token.startswith(self._start_marks) if self._start_marks else token.startswith("##")

    @cached_property
    def _start_marks(self) -> tuple[str, ...]:
        """The marks of word beginnings that the vocabulary uses."""
        return tuple({token[:1] for token in self.tokenizer.get_vocab()} & {"\u0120", "\u2581"})

    @cached_property
    def _ordinary_ids(self) -> list[int]:
        """Ids of all tokens except special tokens."""
        return sorted(set(self.tokenizer.get_vocab().values()) - set(self.encode.special_ids))

    def slots(self, value: Any) -> float:
        return min(estimate_tokens(value), self.max_tokens) if isinstance(value, str) else 0

    def collate(self, items: Sequence[Tensor]) -> dict[str, Tensor]:
        lengths = torch.tensor([len(item) for item in items])
        ids = pad_sequence(list(items), batch_first=True, padding_value=self.pad_id)  # (B, N)
        return {"ids": ids, "mask": torch.arange(ids.shape[1]) < lengths.unsqueeze(1)}


class TextEmbedder(Embedder):
    """ids (B, N) -> word embeddings (B, N, E)."""

    reader: TextReader

    def __init__(self, config: Text, backbone: Backbone) -> None:
        super().__init__()
        self.reader = TextReader(config, backbone)
        self.token_type = config.token_type
        self._backbone = [backbone]  # in a list, because its word embeddings are registered and trained with it

    def forward(self, ids: Tensor, mask: Tensor) -> Segment:
        types = torch.full_like(ids, self.token_type) if self.token_type else None
        return Segment(self._backbone[0].embed(ids), mask, types)

    def describe(self, example: ResolvedExample) -> dict[str, Any]:
        """The tokens as labels; with a fast tokenizer also each slot's span [first character, end] in the text."""
        tokenizer = self.reader.tokenizer
        ids = self.reader.read(example).tolist()
        description: dict[str, Any] = {"names": tokenizer.convert_ids_to_tokens(ids)}
        if getattr(tokenizer, "is_fast", False):
            text = self.reader.text(example)
            spans = self.reader.encode.letters(text)[: len(ids) - len(self.reader.suffix)]
            description |= {"text": text, "spans": [list(span) for span in spans]}
        return description
