"""Texts as word embeddings of the backbone (bertgen, section 3: the caption is a sequence of subwords)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from mmgen.errors import DataError
from mmgen.parts import Backbone, Embedder, Reader
from mmgen.tensors import Example, Segment

from . import Text

REMEMBERED = 300_000  # texts whose tokens are kept


class TextReader(Reader):
    """Tokenises in the loader's workers, every text once: the same ones come again every epoch."""

    def __init__(self, config: Text, backbone: Backbone) -> None:
        self.field, self.max_tokens = config.reads[0], config.max_tokens
        self.tokenizer, self.pad_id = backbone.tokenizer, backbone.pad_id
        self._known: dict[str, list[int]] = {}

    def read(self, example: Example) -> Tensor:
        text = example.inputs.get(self.field)
        if not isinstance(text, str):
            raise DataError(
                f"example '{example.id}' has no {self.field}; its inputs are: {', '.join(example.inputs) or 'none'}"
            )
        return torch.tensor(self._tokens(text), dtype=torch.long)

    def _tokens(self, text: str) -> list[int]:
        if text not in self._known:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            ids = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
            self._known[text] = ids[: self.max_tokens]
        return self._known[text]

    def slots(self, example: Example) -> int:
        """A token a word."""
        text = example.inputs.get(self.field)
        count = text.count(" ") + 1 if isinstance(text, str) else 0
        return min(count, self.max_tokens) if self.max_tokens else count

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
        self._backbone = [backbone]  # in a list: the word embeddings are the backbone's to register and to learn

    def forward(self, ids: Tensor, mask: Tensor) -> Segment:
        return Segment(self._backbone[0].embed(ids), mask)

    def describe(self, example: Example) -> dict[str, Any]:
        """labels; and where in the text, [first character, end], each slot stands, where the tokenizer knows."""
        tokenizer = self.reader.tokenizer
        ids = self.reader.read(example).tolist()
        told: dict[str, Any] = {"labels": tokenizer.convert_ids_to_tokens(ids)}
        if getattr(tokenizer, "is_fast", False):
            text = example.inputs[self.reader.field]
            offsets = tokenizer(text, add_special_tokens=False, verbose=False, return_offsets_mapping=True)[
                "offset_mapping"
            ]
            told |= {"text": text, "spans": [list(span) for span in offsets[: len(ids)]]}
        return told
