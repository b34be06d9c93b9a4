"""Pictures as patches, read from files, through a network whose first layers are frozen."""

from typing import Literal

from pydantic import Field

import mmgen


class Pixels(mmgen.EmbedderConfig):
    """A picture in a file, as a grid of patches of a small convolutional network."""

    type: Literal["pixels"] = "pixels"
    size: int = Field(32, ge=8, multiple_of=8, description="pictures are scaled to this width and height")
    freeze_stem: bool = Field(True, description="do not train the first layer")

    def build(self, backbone):
        from .embedder import PixelsEmbedder

        return PixelsEmbedder(self, backbone)


@mmgen.hookimpl
def register_embedders():
    return [Pixels]
