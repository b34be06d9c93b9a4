"""The config of CLIPScore: how well a text fits its picture, by their embeddings (Hessel et al., 2021)."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

import mmgen
from mmgen.configs import PathOrName
from mmgen.files import not_downloaded


class ClipScore(mmgen.MetricConfig):
    """CLIPScore, 2.5 max(cos, 0) of the embeddings of text and picture, times 100. It needs no references."""

    type: Literal["clip_score"] = "clip_score"
    needs_pictures: ClassVar[bool] = True
    needs_device: ClassVar[bool] = True

    model: Annotated[str, PathOrName()] = Field(
        "openai/clip-vit-base-patch32", description="folder or hub name of a CLIP model of transformers"
    )
    prompt: str = Field("A photo depicts ", description="stands before every text; the paper's")
    batch_size: int = Field(32, ge=1, description="pictures and texts at a time")

    def missing_here(self):
        return {"model": not_downloaded(self.model)}

    def build(self):
        from .metric import ClipScoreMetric

        return ClipScoreMetric(self)


@mmgen.hookimpl
def register_metrics():
    return [ClipScore]
