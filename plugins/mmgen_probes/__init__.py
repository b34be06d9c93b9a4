"""Probes: what a model looks at, how close pictures and captions come inside it, and which heads ground words in
regions."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

import mmgen


class Attention(mmgen.ProbeConfig):
    """Attention of every written word to regions and to the caption's words, drawn over them (bertgen, figure 2)."""

    type: Literal["attention"] = "attention"
    layer: int = Field(-1, description="1 is the first layer, -1 the last; 0 the mean over all layers")
    head: int | None = Field(None, ge=1, description="1 is a layer's first head; by default the mean over its heads")
    examples: int = Field(4, ge=1, description="how many examples are drawn, evenly spread")
    ids: tuple[str, ...] = Field((), description="draw these examples instead")
    limit: int = Field(
        500, ge=1, description="most examples in the JSON file, evenly spread; those drawn are among them"
    )

    def model_post_init(self, context: Any) -> None:
        if self.layer == 0 and self.head is not None:
            raise ValueError("head: only one layer's heads can be told apart; name the layer too")

    def build(self):
        from .attention import AttentionProbe

        return AttentionProbe(self)


class Similarity(mmgen.ProbeConfig):
    """Cosine of [CLS] between the picture alone and the caption alone, at every layer (bertgen, figure 3)."""

    type: Literal["similarity"] = "similarity"
    inputs: tuple[str, ...] = Field(
        (), description="the two inputs to compare; by default the first of pictures and the first of texts"
    )
    batch_size: int = Field(32, ge=1, description="examples at a time")

    def model_post_init(self, context: Any) -> None:
        if self.inputs and len(set(self.inputs)) != 2:
            raise ValueError("inputs: name two, or none for the first of pictures and the first of texts")

    def build(self):
        from .similarity import SimilarityProbe

        return SimilarityProbe(self)


class Grounding(mmgen.ProbeConfig):
    """How often every head's most attended region is the one a caption's phrase names (VisualBERT, section 3).

    Where phrases are in the picture is known by the data set (drawn scenes), or by files of Flickr30k Entities.
    """

    type: Literal["grounding"] = "grounding"
    annotations: Path | None = Field(
        None, description="a folder of Flickr30k Entities, with Sentences/*.txt and Annotations/*.xml"
    )
    parses: Path | None = Field(
        None,
        description="CoNLL-U file with the captions' dependencies, for grounding by relation; drawn scenes know theirs",
    )
    phrase: Literal["mean", "last", "each"] = Field(
        "mean",
        description="what looks for a phrase: the mean of its word pieces, its last one, or each on its own account",
    )
    iou: float = Field(
        0.5, gt=0, le=1, description="least overlap (intersection over union) of a right region with a phrase's box"
    )
    active: float = Field(
        0.2, ge=0, lt=1, description="a head is active when more than this share of its attention goes to regions"
    )
    best: int = Field(3, ge=1, description="active heads a step in the table")
    batch_size: int = Field(32, ge=1, description="captions at a time")

    def build(self):
        from .grounding import GroundingProbe

        return GroundingProbe(self)


@mmgen.hookimpl
def register_probes():
    return [Attention, Similarity, Grounding]
