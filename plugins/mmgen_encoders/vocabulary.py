"""Trains a word-piece vocabulary on a data set's texts, for encoders without weights; loads a saved one.

The most frequent words are pieces; other words are split into single characters. (The trainers of `tokenizers` would
find better pieces, but they break ties by the order of a hash table, so the same texts give different vocabularies.)"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}


def load_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """The tokenizer that `save_pretrained(folder)` wrote."""
    return PreTrainedTokenizerFast.from_pretrained(folder)


def train_tokenizer(texts: Iterable[str], size: int) -> PreTrainedTokenizerFast:
    """An uncased WordPiece tokenizer with BERT's rules and special tokens, of at most `size` pieces."""
    normalizer, splitter = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    words = Counter(word for text in texts for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text)))
    characters = sorted({character for word in words for character in word})
    pieces = [*SPECIAL.values(), *characters, *(f"##{character}" for character in characters)][:size]
    frequent = sorted((word for word in words if len(word) > 1), key=lambda word: (-words[word], word))
    pieces += frequent[: size - len(pieces)]
    tokenizer = Tokenizer(models.WordPiece({piece: number for number, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL)
