"""Configs of VisualBERT (Li et al., 2019): its backbone and its embedder of regions.

BERT with one more position and two more token types; regions follow the text, through one linear layer. It trains
with any objective and generates with the masked generator.
"""

from typing import ClassVar, Literal

from mmgen_encoders import Encoder
from mmgen_vision.mentions_config import MentionsConfig
from pydantic import Field

import mmgen


class VisualBert(Encoder):
    """VisualBERT's encoder: BERT with one position and two token types for regions.

    The new rows are initialised with BERT's first rows (`special_intialize` of the original code, true in all of its
    configurations).
    """

    type: Literal["visualbert"] = "visualbert"
    model_type: ClassVar[str | None] = "bert"

    extra_token_types: Literal[2] = Field(2, description="token types of regions: of the first picture, of the second")
    extra_positions: Literal[1] = Field(1, description="the one position of all regions")
    fuse: Literal["early", "late"] = Field(
        "early",
        description="early: words and regions go through all layers; late: only words do, and one more layer reads "
        "both (the paper's ablation)",
    )

    def backbone_class(self):
        from .backbone import VisualBertBackbone

        return VisualBertBackbone


class VisualBertRegions(MentionsConfig):
    """VisualBERT's regions: features through one linear layer, all at one position, with two token types of regions;
    without boxes, except with `coordinates`. A region that words mention gets the mean of the words' positions. Needs
    the backbone "visualbert"."""

    type: Literal["visualbert_regions"] = "visualbert_regions"
    boxes: Literal[False] = Field(False, description="VisualBERT reads no boxes; see coordinates")
    coordinates: bool = Field(
        False, description="append six relative numbers to every feature: x0, y0, x1, y1, width, height (Flickr30K)"
    )
    mention_scale: float = Field(
        1.0,
        gt=0,
        description="factor of the position embeddings that regions get of the words that mention them; with a larger "
        "one, such as 4, a small model finds the regions of words sooner",
    )
    coordinate_scale: float = Field(
        1.0,
        gt=0,
        description="factor of these numbers; beside hundreds of features a larger one, such as 8, lets relations in "
        "space be learned sooner",
    )
    max_regions: int = Field(
        100, ge=1, description="maximum number of regions per image; a store has them by decreasing confidence"
    )
    visual_type: Literal[0, 1] = Field(
        0, description="the visual token type of a single picture: 0 as in the original code, 1 as in transformers"
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
