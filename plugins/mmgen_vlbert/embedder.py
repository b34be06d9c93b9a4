"""VL-BERT's visual terms (section 3.2 of the paper, and the original code where the two differ)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmgen.errors import DataError
from mmgen.features.embedder import Regions, StoredEmbedder
from mmgen.features.mentions import MentionedReader, Mentions, mentioning
from mmgen.parts import Backbone
from mmgen.tensors import Example, Segment, Slots

from . import VlBertRegions
from .names import outside, within

WAVES = 256  # wave lengths for each of the four numbers of a box
WHOLE = np.array([[0, 0, 1, 1]], np.float32)


class RegionReader(MentionedReader):
    """The whole picture, its regions, and which words mean them."""

    def __init__(self, config: VlBertRegions, backbone: Backbone) -> None:
        self.adds_whole = config.whole == "mean"
        mentions = Mentions(config.mentions, config.first_object + self.adds_whole, backbone.tokenizer)
        super().__init__(config, config.max_regions, mentions)

    def pictures(self, example: Example) -> tuple[Regions, ...]:
        return tuple(self._with_whole(*regions) for regions in super().pictures(example))

    def _with_whole(self, features: np.ndarray, boxes: np.ndarray | None) -> Regions:
        if not self.adds_whole or boxes is None:
            return features, boxes
        return np.concatenate([features.mean(0, keepdims=True), features]), np.concatenate([WHOLE, boxes])

    def slots(self, example: Example) -> int:
        """The regions, the whole picture of each, and what ends them."""
        return super().slots(example) + self.adds_whole * len(example.shown(self.field)) + 1


class VlBertRegionEmbedder(StoredEmbedder):
    """features (B, R, D), boxes (B, R, 4) -> states (B, R + 1, E): the object word and each region's visual term, and a
    slot that ends them. All regions share a position, and all are of the last token type.

    Every other slot gets a visual term too: the whole picture's, that of the region which a word means, or, in rows
    without a picture, one that is learnt. The terms begin as 0, so that the model begins as BERT.
    """

    places = 8 * WAVES
    reader: RegionReader

    def __init__(self, config: VlBertRegions, backbone: Backbone) -> None:
        if backbone.types < 3:
            raise DataError(
                f"vlbert_regions are of a third token type, and the backbone has {backbone.types}; give it "
                'extra_types, or take the backbone "vlbert"'
            )
        super().__init__(config, backbone, reader=RegionReader(config, backbone))
        width = backbone.input_size
        self.token_type, self.texts, self.corners = backbone.types - 1, config.mentions, config.geometry == "corners"
        self.dropout = nn.Dropout(config.dropout)
        self.object_word, self.end, self.without_picture = (nn.Parameter(torch.empty(width)) for _ in range(3))
        for each in (self.object_word, self.end, self.without_picture):
            nn.init.normal_(each, std=0.02)
        self.region_norm, self.word_norm = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)
        for norm in (self.region_norm, self.word_norm):
            nn.init.zeros_(norm.weight)

    def forward(
        self,
        features: Tensor,
        mask: Tensor,
        boxes: Tensor | None = None,
        picture: Tensor | None = None,
        pairs: Tensor | None = None,
    ) -> Segment:
        assert boxes is not None  # the reader refuses regions without
        regions = self.object_word + self.region_norm(self.looks(features, boxes))  # (B, R, E)
        states = torch.cat([regions, self.end.expand(len(regions), 1, -1).to(regions.dtype)], 1)
        positions = F.pad(torch.zeros_like(mask, dtype=torch.long), (0, 1), value=1)
        return Segment(states, F.pad(mask, (0, 1), value=True), torch.full_like(positions, self.token_type), positions)

    def looks(self, features: Tensor, boxes: Tensor) -> Tensor:
        """What regions look like and where they are, (B, R, E): the visual feature embedding before its norm."""
        found = self.dropout(torch.cat([self._normalised(features), self.where(boxes).to(features.dtype)], -1))
        return F.relu(self.projection(found))

    def where(self, boxes: Tensor) -> Tensor:
        """(B, R, 2048): of each of four numbers of a box the sines, then the cosines, in 256 wave lengths."""
        first, last = boxes[..., :2], boxes[..., 2:]
        numbers = boxes if self.corners else torch.cat([(first + last) / 2, last - first], -1)
        lengths = 1000 ** (torch.arange(WAVES, device=boxes.device) / WAVES)
        angles = (numbers.float() * 100).unsqueeze(-1) / lengths  # (B, R, 4, 256)
        return torch.cat([angles.sin(), angles.cos()], -1).flatten(-2)

    def add(self, slots: Slots, collated: Mapping[str, Tensor] | None, name: str) -> Tensor | None:
        """The visual terms of slots that are no regions: (B, L, E)."""
        if collated is None:
            return self._absent(slots).unsqueeze(1).expand_as(slots.states)
        if "pairs" in collated:
            terms = self._meant(slots, collated)
        else:
            terms = self.word_norm(self._whole(collated)).expand(slots.states.shape)
        return terms.masked_fill(self._regions(slots).unsqueeze(-1), 0)

    def tail_term(self, slots: Slots, collated: Mapping[str, Tensor] | None) -> Tensor | None:
        """The visual term of written words: the whole picture's, (B, E)."""
        return self._absent(slots) if collated is None else self.word_norm(self._whole(collated)).squeeze(1)

    def _whole(self, collated: Mapping[str, Tensor]) -> Tensor:
        """What the whole picture looks like, of several the first: (B, 1, E)."""
        return self.looks(collated["features"][:, :1], collated["boxes"][:, :1])

    def _absent(self, slots: Slots) -> Tensor:
        """The term of rows without a picture, (B, E); 0 where another input of regions is there in this one's place."""
        seen = self._regions(slots).any(1, keepdim=True)
        return self.word_norm(self.without_picture).expand(len(seen), -1).masked_fill(seen, 0)

    def _regions(self, slots: Slots) -> Tensor:
        """(B, L) bool: regions and what ends them, of this input and of others like it."""
        assert slots.source is not None  # of a model's rows
        return (slots.types == self.token_type) & (slots.source >= 0) & slots.layout.real

    def _meant(self, slots: Slots, collated: Mapping[str, Tensor]) -> Tensor:
        """Of every slot the term of the region that its word means, of several their mean, else of the whole picture:
        (B, L, E)."""
        pairs, terms = collated["pairs"], self.word_norm(self.looks(collated["features"], collated["boxes"]))
        words, known = mentioning(slots, self.texts, pairs)
        meant = pairs[..., 0].clamp(min=0).unsqueeze(-1).expand(-1, -1, terms.shape[-1])
        chosen = terms.gather(1, meant) * known.unsqueeze(-1)  # (B, M, E)
        total = terms.new_zeros(slots.states.shape).scatter_add(1, words.unsqueeze(-1).expand_as(chosen), chosen)
        count = terms.new_zeros(slots.positions.shape).scatter_add(1, words, known.to(terms.dtype)).unsqueeze(-1)
        return torch.where(count > 0, total / count.clamp(min=1), terms[:, :1])

    def describe(self, example: Example) -> dict[str, Any]:
        """labels, boxes and scores of the example's slots: each whole picture before its regions, what ends them last;
        of several pictures also "pictures", which each is of."""
        told = super().describe(example)
        of = told.get("pictures") or [0] * len(told["labels"])
        starts = [place for place, picture in enumerate(of) if self.reader.adds_whole and picture not in of[:place]]
        for name, whole, last in (
            ("labels", "the whole picture", "the end"),
            ("boxes", WHOLE[0].tolist(), [0.0] * 4),
            ("scores", 1.0, 1.0),
            ("pictures", None, of[-1]),
        ):
            if own := told.get(name):
                for place in reversed(starts):
                    own.insert(place, of[place] if whole is None else whole)
                own.append(last)
        return told

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """By the names of the original code, which has the geometry in front of the features."""
        inner, found = within(weights), {}
        for own, theirs in (
            ("end", "end_embedding.weight"),
            ("region_norm.weight", "visual_ln_object.weight"),
            ("region_norm.bias", "visual_ln_object.bias"),
            ("word_norm.weight", "visual_ln_text.weight"),
            ("word_norm.bias", "visual_ln_text.bias"),
        ):
            if theirs in inner:
                found[own] = weights[inner[theirs]]
        for own, theirs in (
            ("object_word", "object_linguistic_embeddings.weight"),
            ("without_picture", "aux_text_visual_embedding.weight"),
            ("projection.weight", "image_feature_extractor.obj_downsample.1.weight"),
            ("projection.bias", "image_feature_extractor.obj_downsample.1.bias"),
        ):
            if (name := outside(weights, theirs)) is not None:
                found[own] = weights[name]
        for name in ("end", "object_word", "without_picture"):
            if name in found:
                found[name] = found[name].reshape(-1)
        if "projection.weight" in found:
            found["projection.weight"] = found["projection.weight"].roll(-self.places, 1)
        return found
