"""The embedder of regions: W x (features, box), bertgen section 3; the words of boxes."""

from __future__ import annotations

from dataclasses import replace

import torch
from mmgen_vision.box_words import TENTHS, all_words
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from mmgen.errors import PluginError
from mmgen.features.embedder import StoredEmbedder, StoreReader
from mmgen.parts import Backbone
from mmgen.tensors import Segment

from . import Regions


class RegionEmbedder(StoredEmbedder):
    """features (B, N, D), boxes (B, N, 4) -> states (B, N, E), N at most `max_regions`.

    With `box_words`, a region is also the sum of the word embeddings of its box ("left2 top4 right3 bottom6"), times
    `box_words`. So a word of a prompt is found in the regions that it is true of, as LayoutLM's embeddings of positions
    in two dimensions (Xu et al., 2020, section 2.2) are, but in the vectors of the words themselves.
    """

    box_ids: Tensor  # (40, T) tokens of the words of a box, -1 after a word's last
    box_words: float

    def __init__(self, config: Regions, backbone: Backbone) -> None:
        super().__init__(config, backbone, StoreReader(config, config.max_regions))
        self.reader.hides = "regions"  # type: ignore[misc]
        self.box_words, self.box_scale = config.box_words, config.box_scale
        if config.box_words:
            self._backbone = [backbone]  # in a list, so that its weights are not counted as the input's
            tokens = [backbone.encode_text(word) for word in all_words()]
            unknown = getattr(backbone.tokenizer, "unk_token_id", None)
            if all(unknown in ids for ids in tokens):
                raise PluginError(
                    f"box_words: the tokenizer knows no word of a box, such as '{next(all_words())}'; train on prompts "
                    "that name boxes, or leave box_words out"
                )
            ids = pad_sequence([torch.tensor(ids) for ids in tokens], True, -1)
            self.register_buffer("box_ids", ids, persistent=False)

    def forward(
        self, features: Tensor, mask: Tensor, boxes: Tensor | None = None, picture: Tensor | None = None
    ) -> Segment:
        segment = super().forward(features, mask, boxes, picture)
        if not self.box_words or boxes is None:
            return segment
        return replace(segment, states=segment.states + self.box_words * self._words_of(boxes))

    def where(self, boxes: Tensor) -> Tensor:
        """The boxes (B, N, 4), with `box_scale` times their distance from the picture's middle."""
        return boxes if self.box_scale == 1 else 0.5 + self.box_scale * (boxes - 0.5)

    def _words_of(self, boxes: Tensor) -> Tensor:
        """(B, N, E): the sum of the embeddings of the words of each box; a word of several tokens is their mean."""
        real = (self.box_ids >= 0).unsqueeze(-1)
        embedded = self._backbone[0].embed(self.box_ids.clamp(min=0)) * real  # (40, T, E)
        words = embedded.sum(1) / real.sum(1)
        steps = (boxes * TENTHS).long().clamp(0, TENTHS - 1)
        first = torch.arange(0, len(words), TENTHS, device=boxes.device)  # the first word of each side
        return words[steps + first].sum(-2)
