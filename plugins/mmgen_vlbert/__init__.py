"""VL-BERT (Su et al., 2020): BERT with a visual term on every slot. It begins as plain BERT, learns with any objective,
and writes with the masked generator."""

from typing import ClassVar, Literal

from mmgen_encoders import Encoder
from mmgen_vl.mentions_config import MentionsConfig
from pydantic import Field

import mmgen


class VlBert(Encoder):
    """VL-BERT's encoder: BERT with a third token type, of regions."""

    type: Literal["vlbert"] = "vlbert"
    model_type: ClassVar[str | None] = "bert"
    narrows: ClassVar[bool] = True

    extra_token_types: Literal[1] = Field(1, description="the token type of regions")

    def backbone_class(self):
        from .backbone import VlBertBackbone

        return VlBertBackbone


class VlBertRegions(MentionsConfig):
    """Regions as VL-BERT reads them, and the visual term of every other slot: what a region looks like and where it is,
    through one layer; the whole picture in front, a slot that ends them behind. Words get the whole picture, or the
    region that they mean. Needs a backbone with three token types ("vlbert")."""

    type: Literal["vlbert_regions"] = "vlbert_regions"
    hides = "regions"

    boxes: Literal[True] = Field(True, description="VL-BERT always reads where regions are")
    max_regions: int = Field(
        100, ge=1, description="regions of an image at most; a store has them by falling confidence"
    )
    whole_image: Literal["mean", "first"] = Field(
        "mean",
        description="what the whole picture looks like: the mean of its regions, which goes in front of them; or "
        "first, where a store's first region is the whole picture",
    )
    geometry: Literal["centres", "corners"] = Field(
        "centres", description="where regions are: centres and sizes as in the code, or corners as in the paper"
    )
    dropout: float = Field(0.1, ge=0, lt=1, description="on features and geometry, while learning")

    def build(self, backbone):
        from .embedder import VlBertRegionEmbedder

        return VlBertRegionEmbedder(self, backbone)


@mmgen.hookimpl
def register_backbones():
    return [VlBert]


@mmgen.hookimpl
def register_embedders():
    return [VlBertRegions]
