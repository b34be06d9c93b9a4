"""VisualBERT (Li et al., 2019): BERT with one more row in its table of positions and two more token types, and regions
through one linear layer behind the text. It learns with any objective, and writes with the masked generator."""

from typing import ClassVar, Literal

from mmgen_encoders import Encoder
from mmgen_vl.mentions_config import MentionsConfig
from pydantic import Field

import mmgen


class VisualBert(Encoder):
    """VisualBERT's encoder: BERT, with a position that all regions share and token types of their own.

    The new rows begin as BERT's first rows (`special_intialize` of the original code, true in all of its set-ups).
    """

    type: Literal["visualbert"] = "visualbert"
    model_type: ClassVar[str | None] = "bert"
    narrows: ClassVar[bool] = True

    extra_token_types: Literal[2] = Field(2, description="token types of regions: of the first picture, of the second")
    extra_positions: Literal[1] = Field(1, description="the one position of all regions")
    fuse: Literal["early", "late"] = Field(
        "early",
        description="early: words and regions go through all layers; late: words alone do, and one more layer sees "
        "both (the paper's ablation)",
    )

    def where_to_give(self, family):
        if family != "visual_bert":
            return super().where_to_give(family)
        return (
            f'a step starts from it (steps.NAME.start = "weights:{self.weights}"), and backbone.weights brings the '
            'words, such as "bert-base-uncased"'
        )

    def backbone_class(self):
        from .backbone import VisualBertBackbone

        return VisualBertBackbone


class VisualBertRegions(MentionsConfig):
    """Regions as VisualBERT reads them: features through one linear layer, all at one position, in token types of their
    own; without places, but for `coordinates`. A region that words mean gets the mean of the words' positions. Needs
    the backbone "visualbert"."""

    type: Literal["visualbert_regions"] = "visualbert_regions"
    boxes: Literal[False] = Field(False, description="VisualBERT knows no places; see coordinates")
    coordinates: bool = Field(
        False, description="append six numbers to every feature: x0, y0, x1, y1, width, height, relative (Flickr30K)"
    )
    max_regions: int = Field(
        100, ge=1, description="regions of an image at most; a store has them by falling confidence"
    )
    visual_type: Literal[0, 1] = Field(
        0, description="the visual token type of a single picture: 0 as in the original; 1 is what transformers takes"
    )

    def build(self, backbone):
        from .embedder import VisualBertRegionEmbedder

        return VisualBertRegionEmbedder(self, backbone)


@mmgen.hookimpl
def register_backbones():
    return [VisualBert]


@mmgen.hookimpl
def register_embedders():
    return [VisualBertRegions]
