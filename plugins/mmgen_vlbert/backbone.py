"""VL-BERT's encoder: BERT, which also loads weights of the original code."""

from __future__ import annotations

from collections.abc import Mapping

from mmgen_encoders.encoder import EncoderBackbone
from torch import Tensor

from .published_weights import as_bert, within


class VlBertBackbone(EncoderBackbone):
    """BERT; regions and their end slot have the last token type."""

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Weights of the original code, or of plain BERT, which has no token type of regions: it stays as it is."""
        return super().published(as_bert(weights) if within(weights) else weights)
