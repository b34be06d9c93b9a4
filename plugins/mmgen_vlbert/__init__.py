"""Configs of VL-BERT (Su et al., 2020): its backbone and its embedder of regions.

BERT with a visual embedding on every slot. It starts as plain BERT, trains with any objective and generates with the
masked generator.
"""

from typing import ClassVar, Literal

from mmgen_encoders import Encoder
from mmgen_vision.mentions_config import MentionsConfig
from pydantic import Field

import mmgen


class VlBert(Encoder):
    """VL-BERT's encoder: BERT with a third token type for regions."""

    type: Literal["vlbert"] = "vlbert"
    model_type: ClassVar[str | None] = "bert"

    extra_token_types: Literal[1] = Field(1, description="the token type of regions")

    def backbone_class(self):
        from .backbone import VlBertBackbone

        return VlBertBackbone


class VlBertRegions(MentionsConfig):
    """VL-BERT's regions, and the visual embeddings of all other slots. A region's features and geometry go through one
    layer; the whole picture comes before the regions, an end slot after them. Words get the embedding of the whole
    picture, or of the region that they mention. Needs a backbone with three token types ("vlbert")."""

    type: Literal["vlbert_regions"] = "vlbert_regions"
    hides = "regions"

    boxes: Literal[True] = Field(True, description="VL-BERT always reads boxes")
    max_regions: int = Field(
        100, ge=1, description="maximum number of regions per image; a store has them by decreasing confidence"
    )
    whole_image: Literal["mean", "first"] = Field(
        "mean",
        description="what the whole picture looks like: the mean of its regions, which goes in front of them; or "
        "first, where a store's first region is the whole picture",
    )
    geometry: Literal["centres", "corners"] = Field(
        "centres", description="geometry of regions: centres and sizes as in the code, or corners as in the paper"
    )
    dropout: float = Field(0.1, ge=0, lt=1, description="dropout on features and geometry during training")
    region_scale: float = Field(
        0.0, ge=0, description="initial weight of the norm of regions' visual embeddings (visual_scale_object_init)"
    )
    word_scale: float = Field(
        0.0, ge=0, description="initial weight of the norm of words' visual embeddings (visual_scale_text_init)"
    )

    def build(self, backbone):
        from .embedder import VlBertRegionEmbedder

        return VlBertRegionEmbedder(self, backbone)


@mmgen.hookimpl
def register_backbones():
    return [VlBert]


@mmgen.hookimpl
def register_embedders():
    return [VlBertRegions]
