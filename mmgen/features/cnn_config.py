"""What extractors over a timm network are configured by. Free of torch, so that plugins can import it at their top."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import Field

from ..configs import ExtractorConfig


class Chosen(NamedTuple):
    """What a network's features are made with."""

    level: int
    pool: int
    image_size: int


PRETRAINED = Chosen(level=-1, pool=1, image_size=448)
RANDOM = Chosen(level=0, pool=3, image_size=192)


class CnnConfig(ExtractorConfig):
    """Features of a timm network, pooled over boxes or cells of its map.

    Settings that are left open follow from the weights. Pretrained weights: the coarsest level, averaged. Random
    weights: the finest level in 3 x 3 parts, because later random layers lose what the first layer still has.
    """

    model: str = Field("resnet18", description="name of a timm model")
    weights: str = Field(
        "random", description='"pretrained" (downloaded by timm), "random" (from the seed), or a local safetensors file'
    )
    seed: int = Field(0, ge=0, description="of random weights")
    level: int | None = Field(None, description="which of the network's maps, 0 the finest, -1 the coarsest")
    pool: int | None = Field(
        None, ge=1, le=14, description="a box or cell is pooled into this many by this many parts, laid end to end"
    )
    image_size: int | None = Field(
        None,
        ge=32,
        le=4096,
        description="the longer side of pictures, in pixels; by default 448, or 192 with random weights",
    )
    batch_size: int = Field(16, ge=1, description="pictures at a time")

    def chosen(self) -> Chosen:
        """Level, pool and image size: those that are set, and what fits the weights for the others."""
        fitting = RANDOM if self.weights == "random" else PRETRAINED
        own = {name: getattr(self, name) for name in Chosen._fields if getattr(self, name) is not None}
        return fitting._replace(**own)
