"""Tags of a caption, its words without function words: their reader and their embedder.

MC-SBN's published input takes nouns and verbs from the caption *and from the reference question*, and its question word
("wh" tag): that tells the answer of the test, so here tags come from the caption alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch
from mmgen.errors import DataError
from mmgen.examples import ResolvedExample
from mmgen.parts import Backbone, Embedder, Reader
from mmgen.tensors import Segment
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from . import Tags

FUNCTION_WORDS = frozenset(
    "a an the this that these those some any each every no and or but nor so as if than then of in on at by for from "
    "to with without into onto over under above below between among behind beside besides near next through across "
    "along around up down off out about against during before after i you he she it we they me him her us them my your "
    "his its our their who whom whose which what where when why how there here is are was were be been being am do "
    "does did has have had having will would can could may might must shall should not "
    "very too also just only see".split()
)


def tags_of(text: str, most: int) -> list[str]:
    """The first `most` different words of a text, without function words, in lower case."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    return [word for word in dict.fromkeys(words) if word not in FUNCTION_WORDS][:most]


class TagReader(Reader):
    """Reads the tags of an example, in the loader's workers."""

    def __init__(self, config: Tags, backbone: Backbone) -> None:
        self.fields, self.most = config.fields, config.max_tags
        self.encode, self.pad_id = backbone.text_encoder, backbone.pad_id

    def tags(self, example: ResolvedExample) -> list[str]:
        """Raises DataError if the example lacks a field."""
        for field in self.fields:
            if not isinstance(example.inputs.get(field), str):
                raise DataError(
                    f"example '{example.id}' has no {field}; its inputs are: {', '.join(example.inputs) or 'none'}",
                )
        return tags_of(" ".join(example.inputs[field] for field in self.fields), self.most)

    def read(self, example: ResolvedExample) -> Tensor:
        (ids,) = self.encode([" ".join(self.tags(example))])
        return torch.tensor(ids, dtype=torch.long)

    def slots(self, value: Any) -> int:
        return self.most

    def collate(self, items: Sequence[Tensor]) -> dict[str, Tensor]:
        """ids and mask (B, N); a row without tags has none."""
        ids = pad_sequence(list(items), batch_first=True, padding_value=self.pad_id)
        lengths = torch.tensor([len(item) for item in items])
        return {"ids": ids, "mask": torch.arange(ids.shape[1]) < lengths.unsqueeze(1)}


class TagEmbedder(Embedder):
    """ids (B, N) -> word embeddings (B, N, E)."""

    reader: TagReader

    def __init__(self, config: Tags, backbone: Backbone) -> None:
        super().__init__()
        self.reader = TagReader(config, backbone)
        self._backbone = [backbone]  # in a list: its parameters are trained and saved with the backbone

    def forward(self, ids: Tensor, mask: Tensor) -> Segment:
        return Segment(self._backbone[0].embed(ids), mask)
