"""Mentions, words of a text that refer to regions: their reader, and the slots of words and regions in a row.

The texts of VCR name objects, and models connect these words to the objects' regions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from mmgen.errors import DataError
from mmgen.examples import ResolvedExample
from mmgen.features.classes import Regions
from mmgen.features.embedder import StoreReader
from mmgen.tensors import Slots
from mmgen.tokens import TextEncoder

from .mentions_config import BEHIND, MentionsConfig


class Mentions:
    """Finds the tokens that refer to regions; a part of a reader, in loader workers.

    texts         names of text inputs, equal to the fields they read. An example may have `All` of a text's mentions,
                  (first character, end, (objects)), in the field <name>_mentions
    first_object  index of the region of the first object
    """

    def __init__(self, texts: Sequence[str], first_object: int, encoder: TextEncoder) -> None:
        self.texts, self.first_object, self.encoder = tuple(texts), first_object, encoder

    def pairs(self, example: ResolvedExample, regions: int, objects: int) -> Tensor:
        """(M, 3) triples: region, index of the text, index of the token. Only mentions of the first `regions` regions,
        those of the first picture that the model sees, are included. Raises DataError for an object that is not among
        the `objects` of the first picture."""
        triples: list[tuple[int, int, int]] = []
        for place, name in enumerate(self.texts):
            mentions = example.shown(f"{name}{BEHIND}")
            spans = self.encoder.letters(example.inputs.get(name, "")) if mentions else []
            for first, end, mentioned in mentions:
                tokens = slots_between(spans, first, end)
                for number in mentioned:
                    if not 0 <= number < objects:
                        raise DataError(
                            f"example '{example.id}' mentions object {number} in '{name}', but its picture has "
                            f"{objects} objects, which count from 0"
                        )
                    region = self.first_object + number
                    triples += [(region, place, token) for token in tokens if region < regions]
        return torch.tensor(triples, dtype=torch.long).view(-1, 3)


class MentionedReader(StoreReader):
    """Reads regions from a store, and the mentions of these regions in the example's texts."""

    def __init__(self, config: MentionsConfig, limit: int, mentions: Mentions) -> None:
        super().__init__(config, limit)
        self.mentions, self.first_object = mentions, config.first_object

    def read(self, example: ResolvedExample) -> Any:
        """The regions of every picture, and the triples of `Mentions.pairs`."""
        pictures = self.pictures(example)
        objects = self.count(example.shown(self.field)[0]) - self.first_object
        return pictures, self.mentions.pairs(example, len(pictures[0][0]), objects)

    def pictures(self, example: ResolvedExample) -> tuple[Regions, ...]:
        """The features (R, D) and boxes (R, 4) of every picture."""
        return super().read(example)

    def collate(self, items: Sequence[Any]) -> dict[str, Tensor]:
        """As in `StoreReader`, plus pairs (B, M, 3) if any example has mentions, padded with -1."""
        batch = super().collate([pictures for pictures, _ in items])
        if any(len(pairs) for _, pairs in items):
            batch["pairs"] = pad_sequence([pairs for _, pairs in items], True, -1)
        return batch


def columns(slots: Slots, name: str) -> Tensor:
    """(N,) columns of an input's slots in rows that are not packed yet; the columns are the same in every row."""
    assert slots.source is not None
    return (slots.source[0] == slots.inputs.index(name)).nonzero().squeeze(1)


def mentioning(slots: Slots, texts: Sequence[str], pairs: Tensor) -> tuple[Tensor, Tensor]:
    """The slots of the words in pairs (B, M, 3): columns (B, M), and a mask (B, M) of those that exist: a text may be
    absent, or truncated before the word."""
    slot_columns = torch.zeros_like(pairs[..., 0])
    present = torch.zeros_like(slot_columns, dtype=torch.bool)
    for place, text in enumerate(texts):
        if text in slots.inputs:
            text_columns = columns(slots, text)
            matches = (pairs[..., 1] == place) & (pairs[..., 2] < len(text_columns))
            slot_columns = torch.where(
                matches, text_columns[pairs[..., 2].clamp(0, len(text_columns) - 1)], slot_columns
            )
            present |= matches
    return slot_columns, present & slots.layout.real.gather(1, slot_columns)


def slots_between(spans: Sequence[Sequence[int]], first: int, end: int) -> tuple[int, ...]:
    """The slots that overlap the characters `first` to `end` of a text, given the spans of all slots."""
    return tuple(slot for slot, (start, stop) in enumerate(spans) if start < end and stop > first)
