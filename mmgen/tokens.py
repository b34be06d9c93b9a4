"""People's texts as token ids: special tokens in them ("[MASK]", "</s>") are ordinary characters, or unknown words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def estimate_tokens(text: str) -> float:
    """About how many tokens a text has, without a tokenizer: its words and the mark at its end, or more if its words
    are long or not separated."""
    words, least = text.count(" ") + 2, len(text) / 6
    return words if words > least else least


class TextEncoder:
    """Encodes people's texts with a tokenizer, without adding special tokens. Picklable, for readers.

    special_ids  ids of the tokenizer's special tokens; of these, only that for unknown words can stand for a text
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        added = getattr(tokenizer, "added_tokens_decoder", {})
        special = {number for number, token in added.items() if token.special}
        self.special_ids = frozenset(getattr(tokenizer, "all_special_ids", ())) | special
        self._options: dict[str, Any] = {"add_special_tokens": False, "verbose": False}
        if getattr(tokenizer, "is_fast", False):  # others would not find added words either
            self._options["split_special_tokens"] = True
        self._counts: dict[str, int] = {}  # tokens of words

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of each text."""
        if not texts:
            return []
        encoded = self.tokenizer(list(texts), **self._options)["input_ids"]
        return [ids if self.special_ids.isdisjoint(ids) else self._ordinary(ids) for ids in encoded]

    def count(self, text: str) -> int:
        """About how many tokens a text has: those of its words. Every word is encoded once."""
        words = text.split()
        try:
            return sum(map(self._counts.__getitem__, words))
        except KeyError:
            new = [word for word in words if word not in self._counts]
            self._counts |= {word: len(ids) for word, ids in zip(new, self([f" {word}" for word in new]), strict=True)}
            return sum(map(self._counts.__getitem__, words))

    def letters(self, text: str) -> list[tuple[int, int]]:
        """The offsets (first character, last + 1) of each token in a text. Only fast tokenizers provide them."""
        encoding = self.tokenizer(text, **self._options, return_offsets_mapping=True)
        tokens = zip(encoding["input_ids"], encoding["offset_mapping"], strict=True)
        return [offsets for number, offsets in tokens if self._ordinary([number])]

    def _ordinary(self, ids: Sequence[int]) -> list[int]:
        """Ids without special tokens: unknown words in their place, if the tokenizer has a token for them. Some
        tokenizers have special tokens among their word pieces (SentencePiece), or know them in any text (those that are
        not fast)."""
        unknown = getattr(self.tokenizer, "unk_token_id", None)
        if unknown is None:
            return [number for number in ids if number not in self.special_ids]
        return [unknown if number in self.special_ids else number for number in ids]
