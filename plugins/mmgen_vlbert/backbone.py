"""VL-BERT's encoder: BERT's, with its weights by the names of the original code."""

from __future__ import annotations

from collections.abc import Mapping

from mmgen_encoders.encoder import EncoderBackbone
from torch import Tensor

from .names import as_bert, within


class VlBertBackbone(EncoderBackbone):
    """Regions and what ends them are of the last token type."""

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Of the original code, or of BERT alone: then the type of regions stays as it was drawn."""
        return super().published(as_bert(weights) if within(weights) else weights)
