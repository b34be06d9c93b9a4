"""Configs of CNN grids, an embedder and an extractor: an image as the cells of a feature map, stored like regions."""

from pathlib import Path
from typing import Literal

from mmgen_vl.cnn_config import CnnConfig
from pydantic import Field

import mmgen


class Grid(mmgen.FeaturesConfig):
    """Cells of a grid over the image: their features and boxes from an HDF5 store, through one linear layer."""

    type: Literal["grid"] = "grid"

    def build(self, backbone):
        from .embedder import GridEmbedder

        return GridEmbedder(self, backbone)


class TimmGrid(CnnConfig):
    """Features of a timm network over a regular grid; a cell's box is its position in the picture.

    The defaults depend on the weights. Pretrained weights: the coarsest level, averaged over a cell. Random weights:
    the finest level in 3 x 3 parts of a cell, because later random layers lose information of the first layer.
    """

    type: Literal["timm_grid"] = "timm_grid"
    grid: int = Field(6, ge=1, le=32, description="cells per side; an image has grid x grid cells")
    image_size: int | None = Field(
        None,
        ge=32,
        le=4096,
        description="side in pixels of the square that pictures are resized to; by default 448, random weights: 192",
    )

    def build(self):
        from .extractor import GridFeatures

        return GridFeatures(self)

    def load(self, folder: Path):
        from .extractor import GridFeatures

        return GridFeatures(self, folder)


@mmgen.hookimpl
def register_embedders():
    return [Grid]


@mmgen.hookimpl
def register_extractors():
    return [TimmGrid]
