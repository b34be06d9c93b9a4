"""The fake embedder `bag`: words share one position, the end has another, and a term is added to every slot."""

from typing import Literal

import torch
from pydantic import Field
from torch import nn

import mmgen
from mmgen.parts import Embedder
from mmgen.tensors import Segment, taken
from mmgen.testing.toy import WordsReader


class Bag(mmgen.EmbedderConfig):
    """A text as a bag of words in one position; the mean of its terms is added to every slot of the row."""

    type: Literal["bag"] = "bag"
    position: int = Field(0, description="of the words, counted from the first free one; -1 - k: the extra row k")
    token_type: int = Field(1, description="of the words and the end")

    def build(self, backbone):
        return BagEmbedder(self, backbone)

    def texts(self, example):
        return example.shown(self.fields[0])


class BagReader(WordsReader):
    """Words that cannot be hidden, since the end takes one more slot."""

    hides = None


class BagEmbedder(Embedder):
    """See `Bag`. Words get half of their own term, the end none, all other slots the mean of the words' terms. Rows
    without this input get a trained vector."""

    def __init__(self, config, backbone):
        super().__init__()
        self.config, self.reader = config, BagReader(config.fields[0], backbone)
        self._backbone = [backbone]  # in a list: its parameters are not ours
        self.end = nn.Parameter(torch.randn(backbone.input_size))
        self.absent = nn.Parameter(torch.randn(backbone.input_size))
        self.change = nn.Linear(backbone.input_size, backbone.input_size)

    def forward(self, ids, mask):
        states = torch.cat([self._backbone[0].embed(ids), self.end.expand(len(ids), 1, -1)], 1)
        full_mask = torch.cat([mask, torch.ones_like(mask[:, :1])], 1)
        positions = torch.full_like(full_mask, self.config.position, dtype=torch.long)
        positions[:, -1] = max(self.config.position, -1) + 1
        return Segment(states, full_mask, torch.full_like(positions, self.config.token_type), positions)

    def add(self, slots, collated, name):
        about = self.tail_term(slots, collated).unsqueeze(1).expand_as(slots.states)
        if collated is None or slots.index is None:
            return about
        slot_terms = torch.cat([self._embed_terms(**collated) * 0.5, torch.zeros_like(about[:, :1])], 1)  # (B, N, E)
        return torch.where(
            slots.of(name).unsqueeze(-1), taken(slot_terms, slots.index.clamp(0, slot_terms.shape[1] - 1)), about
        )

    def tail_term(self, slots, collated):
        if collated is None:
            return self.absent.expand(len(slots.states), -1)
        real = collated["mask"].unsqueeze(-1)
        return (self._embed_terms(**collated) * real).sum(1) / real.sum(1).clamp(min=1)

    def _embed_terms(self, ids, mask):
        """(B, N, E)"""
        return self.change(self._backbone[0].embed(ids))
