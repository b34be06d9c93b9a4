"""Configs of retrieval: its metric and its card."""

from typing import Literal

from pydantic import Field

import mmgen


class Retrieval(mmgen.MetricConfig):
    """Recall at 1, 5 and 10 of pictures for captions and of captions for pictures, in percent, among those of the
    scored split (Karpathy and Fei-Fei, 2015). A caption that is also true of another picture is right there too."""

    type: Literal["retrieval"] = "retrieval"
    judges = frozenset({"vectors"})

    image: str = Field("image", description="the input with the picture, and the field of an example")
    caption: str = Field("caption", description="the input with the caption, and the field of an example")

    def build(self):
        from .metric import RetrievalMetric

        return RetrievalMetric(self.image, self.caption)


class Similarity(mmgen.RendererConfig):
    """How similar the two inputs of an example are."""

    type: Literal["similarity_card"] = "similarity_card"
    renders = frozenset({"vectors"})

    def build(self):
        from .card import SimilarityCard

        return SimilarityCard()
