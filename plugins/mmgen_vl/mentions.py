"""Words that mean regions: the texts of VCR name objects, and systems tie those words to the objects' regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from mmgen.errors import DataError
from mmgen.features.embedder import StoreReader
from mmgen.features.regions import Regions
from mmgen.sequence import letters, slots_between
from mmgen.tensors import Example, ResolvedExample, Slots

from .mentions_config import BEHIND, MentionsConfig


class Mentions:
    """Which tokens of which texts mean which regions; a part of a reader, in loader workers.

    texts         inputs of texts, each called as the field that it reads. An example may have `All` of a text's
                  mentions, (first letter, end, (objects)), in the field of that name with _mentions behind it
    first_object  which region the first object is
    """

    def __init__(self, texts: Sequence[str], first_object: int, tokenizer: Any) -> None:
        self.texts, self.first_object, self.tokenizer = tuple(texts), first_object, tokenizer

    def pairs(self, example: ResolvedExample, regions: int) -> Tensor:
        """(M, 3): a region, which of the texts, which of its tokens. Mentions of others than the first `regions`, those
        of the first picture, are left out. Raises DataError for objects below 0."""
        triples: list[tuple[int, int, int]] = []
        for place, name in enumerate(self.texts):
            mentions = example.shown(f"{name}{BEHIND}")
            spans = letters(self.tokenizer, example.inputs.get(name, "")) if mentions else []
            for first, end, objects in mentions:
                tokens = slots_between(spans, first, end)
                if not 0 <= first < end <= len(example.inputs.get(name, "")):
                    raise DataError(
                        f"example '{example.id}' mentions letters {first} to {end} of '{name}', which has "
                        f"{len(example.inputs.get(name, ''))}"
                    )
                for number in objects:
                    if number < 0:
                        raise DataError(f"example '{example.id}' mentions object {number}; they count from 0")
                    region = self.first_object + number
                    triples += [(region, place, token) for token in tokens if region < regions]
        return torch.tensor(triples, dtype=torch.long).view(-1, 3)

    def find_gaps(self, examples: Sequence[Example]) -> None:
        """Raises DataError where examples have mentions of a text that is not among `texts`, though others are: they
        would be left out without a word."""
        known = {f"{name}{BEHIND}" for name in self.texts}
        for example in examples if known else ():
            if field := next((name for name in example.inputs if name.endswith(BEHIND) and name not in known), None):
                text = field.removesuffix(BEHIND)
                raise DataError(
                    f"example '{example.id}' has {field}, and mentions = [{', '.join(map(repr, self.texts))}] leaves "
                    f"'{text}' out; add it, and call the input that reads it '{text}'"
                )


class MentionedReader(StoreReader):
    """Regions out of a store, and which words of the example's texts mean them."""

    def __init__(self, config: MentionsConfig, limit: int, mentions: Mentions) -> None:
        super().__init__(config, limit)
        self.mentions = mentions

    def read(self, example: ResolvedExample) -> Any:
        """Of every picture its regions; and the pairs of `Mentions`."""
        pictures = self.pictures(example)
        return pictures, self.mentions.pairs(example, len(pictures[0][0]))

    def pictures(self, example: ResolvedExample) -> tuple[Regions, ...]:
        """Of every picture its features (R, D) and boxes (R, 4)."""
        return super().read(example)

    def collate(self, items: Sequence[Any]) -> dict[str, Tensor]:
        """Beside what every store's reader gives, where words mean regions: pairs (B, M, 3), -1 behind the last."""
        batch = super().collate([pictures for pictures, _ in items])
        if any(len(pairs) for _, pairs in items):
            batch["pairs"] = pad_sequence([pairs for _, pairs in items], True, -1)
        return batch

    def find_gaps(self, examples: Sequence[Example]) -> None:
        super().find_gaps(examples)
        self.mentions.find_gaps(examples)


def columns(slots: Slots, name: str) -> Tensor:
    """(N,) in which columns of rows that are not packed yet an input's slots stand; they are the same in every row."""
    assert slots.source is not None
    return (slots.source[0] == slots.inputs.index(name)).nonzero().squeeze(1)


def mentioning(slots: Slots, texts: Sequence[str], pairs: Tensor) -> tuple[Tensor, Tensor]:
    """Where the words of pairs (B, M, 3) stand: columns (B, M), and which of them are there (B, M): a text may be
    absent, or cut before them."""
    slot_columns = torch.zeros_like(pairs[..., 0])
    known = torch.zeros_like(slot_columns, dtype=torch.bool)
    for place, text in enumerate(texts):
        if text in slots.inputs:
            text_columns = columns(slots, text)
            here = (pairs[..., 1] == place) & (pairs[..., 2] < len(text_columns))
            slot_columns = torch.where(here, text_columns[pairs[..., 2].clamp(0, len(text_columns) - 1)], slot_columns)
            known |= here
    return slot_columns, known & slots.layout.real.gather(1, slot_columns)
