"""Texts as word embeddings of the backbone (bertgen, section 3: the caption is a sequence of subwords)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from mmgen.errors import MissingInput
from mmgen.parts import Backbone, Embedder, Reader
from mmgen.sequence import letters
from mmgen.tensors import Hiding, ResolvedExample, Segment

from . import Text

REMEMBERED = 300_000  # texts whose tokens are kept


class TextReader(Reader):
    """Tokenises in the loader's workers, every text once: the same ones come again every epoch."""

    hides = "words"

    def __init__(self, config: Text, backbone: Backbone) -> None:
        self.fields, self.max_tokens = config.reads, config.max_tokens
        self.tokenizer, self.pad_id, self.mask_id = backbone.tokenizer, backbone.pad_id, backbone.mask_id
        self.last = [backbone.mask_id] if config.append_mask else []
        self._known: dict[str, list[int]] = {}

    @property
    def field(self) -> str:
        """The first of the fields that it reads."""
        return self.fields[0]

    def text(self, example: ResolvedExample) -> str:
        """What stands in its fields, one behind the other. Raises DataError where one is not there."""
        texts = [example.inputs.get(field) for field in self.fields]
        for field, text in zip(self.fields, texts, strict=True):
            if not isinstance(text, str):
                raise MissingInput(
                    f"example '{example.id}' has no {field}; its inputs are: {', '.join(example.inputs) or 'none'}",
                    field,
                )
        return " ".join(map(str, texts))

    def read(self, example: ResolvedExample) -> Tensor:
        return torch.tensor(self._tokens(self.text(example)) + self.last, dtype=torch.long)

    def _tokens(self, text: str) -> list[int]:
        if text not in self._known:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            ids = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
            self._known[text] = ids[: self.max_tokens]
        return self._known[text]

    def hide(self, item: Tensor, draw: random.Random, hiding: Hiding) -> tuple[Tensor, Tensor]:
        """Tokens (N,) with a share of them hidden, and what stood there: (N,) ids, -100 elsewhere. The [MASK] that is
        appended is never predicted."""
        ids, labels = item.clone(), torch.full_like(item, -100)
        known = item[: len(item) - len(self.last)].tolist()
        words = self._words(known) if hiding.whole_words else [[place] for place in range(len(known))]
        chosen = [word for word in words if draw.random() < hiding.rate]
        masked, other = hiding.replace
        for word in chosen:
            fate = draw.random()
            for place in word:
                labels[place] = item[place]
                if fate < masked:
                    ids[place] = self.mask_id
                elif fate < masked + other:
                    ids[place] = draw.choice(self._ordinary)
        return ids, labels

    def _words(self, ids: Sequence[int]) -> list[list[int]]:
        """Places of tokens, the pieces of a word together."""
        words: list[list[int]] = []
        for place, token in enumerate(self.tokenizer.convert_ids_to_tokens(list(ids))):
            if words and self._goes_on(token):
                words[-1].append(place)
            else:
                words.append([place])
        return words

    def _goes_on(self, token: str) -> bool:
        """Whether a piece goes on with the word before it: WordPiece marks those ("##s"), byte-level BPE and
        SentencePiece mark those that begin one."""
        begins = [mark for mark in ("\u0120", "\u2581") if self._marks[mark]]
        return not token.startswith(tuple(begins)) if begins else token.startswith("##")

    @cached_property
    def _marks(self) -> dict[str, bool]:
        """Which marks of a word's begin the vocabulary has."""
        return {
            mark: any(token.startswith(mark) for token in self.tokenizer.get_vocab()) for mark in ("\u0120", "\u2581")
        }

    @cached_property
    def _ordinary(self) -> list[int]:
        """Ids of all tokens that are no special ones."""
        return sorted(set(self.tokenizer.get_vocab().values()) - set(self.tokenizer.all_special_ids))

    def slots(self, example: ResolvedExample) -> int:
        """A token a word."""
        texts = (example.inputs.get(field) for field in self.fields)
        count = sum(text.count(" ") + 1 for text in texts if isinstance(text, str))
        return min(count, self.max_tokens) + len(self.last)

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
        self._backbone = [backbone]  # in a list: the word embeddings are the backbone's to register and to learn

    def forward(self, ids: Tensor, mask: Tensor) -> Segment:
        types = torch.full_like(ids, self.token_type) if self.token_type else None
        return Segment(self._backbone[0].embed(ids), mask, types)

    def describe(self, example: ResolvedExample) -> dict[str, Any]:
        """labels; and where in the text, [first character, end], each slot stands, where the tokenizer knows."""
        tokenizer = self.reader.tokenizer
        ids = self.reader.read(example).tolist()
        described: dict[str, Any] = {"labels": tokenizer.convert_ids_to_tokens(ids)}
        ids = ids[: len(ids) - len(self.reader.last)]
        if getattr(tokenizer, "is_fast", False):
            text = self.reader.text(example)
            described |= {"text": text, "spans": [list(span) for span in letters(tokenizer, text)[: len(ids)]]}
        return described
