"""VisualBERT's region embedder (section 3.2 of the paper; the original code where the two differ)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from mmgen_vision.mentions import MentionedReader, Mentions, columns, mentioning
from torch import Tensor

from mmgen.errors import PluginError
from mmgen.features.embedder import StoredEmbedder
from mmgen.parts import Backbone
from mmgen.tensors import Segment, Slots

from . import VisualBertRegions
from .backbone import VisualBertBackbone
from .published_weights import projection


class VisualBertRegionEmbedder(StoredEmbedder):
    """features (B, N, D) -> states (B, N, E) at position -1. The token types are the backbone's last two: the first for
    `visual_type` 0 and for the first of several pictures, the second for 1 and for the other pictures."""

    places = 6
    typed = False

    def __init__(self, config: VisualBertRegions, backbone: Backbone) -> None:
        if not isinstance(backbone, VisualBertBackbone):
            raise PluginError('visualbert_regions needs the backbone "visualbert", which has the position and types')
        mentions = Mentions(config.mentions, config.first_object, backbone.text_encoder)
        reader = MentionedReader(config, config.max_regions, mentions)
        reader.boxes = config.coordinates
        super().__init__(config, backbone, reader)
        self.texts, self.first_type, self.visual_type = config.mentions, backbone.types - 2, config.visual_type
        self.scale, self.mention_scale = config.coordinate_scale, config.mention_scale
        self._backbone = [backbone]

    def forward(
        self,
        features: Tensor,
        mask: Tensor,
        boxes: Tensor | None = None,
        picture: Tensor | None = None,
        pairs: Tensor | None = None,
    ) -> Segment:
        states = super().forward(features, mask, boxes).states
        visual = torch.full_like(mask, self.visual_type, dtype=torch.long)
        if picture is not None:
            visual = torch.where((picture > 0).any(1, keepdim=True), picture.clamp(max=1), visual)
        return Segment(states, mask, self.first_type + visual, torch.full_like(visual, -1))

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return {f"projection.{part}": tensor for part, tensor in projection(weights).items()}

    def where(self, boxes: Tensor) -> Tensor:
        """(B, N, 6): the corners, the width and the height, times `coordinate_scale`."""
        return self.scale * torch.cat([boxes, boxes[..., 2:] - boxes[..., :2]], -1)

    def add(self, slots: Slots, collated: Mapping[str, Tensor] | None, name: str) -> Tensor | None:
        """Regions that words mention get the mean of the words' position embeddings (the paper adds the embeddings,
        the original code takes their mean), times `mention_scale`."""
        if collated is None or "pairs" not in collated:
            return None
        pairs = collated["pairs"]
        regions = columns(slots, name)[pairs[..., 0].clamp(min=0)]  # (B, M) columns of the rows
        words, present = mentioning(slots, self.texts, pairs)
        positions = slots.positions.gather(1, words)
        rows = self._backbone[0].positions(positions.clamp(min=0)) * present.unsqueeze(-1)  # (B, M, E)
        total = rows.new_zeros(slots.states.shape).scatter_add(1, regions.unsqueeze(-1).expand_as(rows), rows)
        count = rows.new_zeros(regions.shape[0], slots.positions.shape[1]).scatter_add(
            1, regions, present.to(rows.dtype)
        )
        mean = total / count.clamp(min=1).unsqueeze(-1)
        return mean if self.mention_scale == 1 else mean * self.mention_scale
