"""Configs of probes into a model: attention, similarity of pictures and captions, heads that ground words in places."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

import mmgen


class Attention(mmgen.ProbeConfig):
    """Attention of every generated word to regions and to the caption's words, drawn over them (bertgen, figure 2)."""

    type: Literal["attention"] = "attention"
    layer: int = Field(-1, description="1 is the first layer, -1 the last")
    head: int | None = Field(None, ge=1, description="1 is a layer's first head; by default the mean over heads")
    examples: int = Field(4, ge=1, description="number of examples to draw, evenly spaced")
    ids: tuple[str, ...] = Field((), description="draw these examples instead")
    limit: int = Field(
        500, ge=1, description="most examples in the JSON file, evenly spaced; drawn examples are included"
    )

    def build(self):
        from .attention import AttentionProbe

        return AttentionProbe(self)


class Similarity(mmgen.ProbeConfig):
    """Cosine of [CLS] between the picture alone and the caption alone, at every layer (bertgen, figure 3)."""

    type: Literal["similarity"] = "similarity"
    inputs: tuple[str, ...] = Field(
        (), description="the two inputs to compare; by default the first picture input and the first text input"
    )

    def model_post_init(self, context: Any) -> None:
        if self.inputs and len(set(self.inputs)) != 2:
            raise ValueError("inputs: name two, or none for the first picture input and the first text input")

    def build(self):
        from .similarity import SimilarityProbe

        return SimilarityProbe(self)


class Grounding(mmgen.ProbeConfig):
    """How often each head's most attended region is the region that a caption's phrase names (VisualBERT, section 3).

    The phrases' boxes come from the data set (drawn scenes) or from files of Flickr30k Entities.
    """

    type: Literal["grounding"] = "grounding"
    annotations: Path | None = Field(
        None, description="folder of Flickr30k Entities with Sentences/*.txt and Annotations/*.xml"
    )
    parses: Path | None = Field(
        None,
        description="CoNLL-U file with the captions' dependencies, for grounding by relation; drawn scenes need none",
    )
    active_threshold: float = Field(
        0.2, ge=0, lt=1, description="a head is active when more than this share of its attention goes to regions"
    )

    def build(self):
        from .grounding import GroundingProbe

        return GroundingProbe(self)


@mmgen.hookimpl
def register_probes():
    return [Attention, Similarity, Grounding]
