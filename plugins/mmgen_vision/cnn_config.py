"""Settings of extractors with a timm network. Free of torch, so that plugins can import this module at their top."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field

from mmgen.configs import ExtractorConfig, PathOrName
from mmgen.files import not_downloaded


def hub_name(model: str) -> str | None:
    """The name on the hub of a timm model's pretrained weights, if they are there."""
    import timm

    name = getattr(timm.get_pretrained_cfg(model), "hf_hub_id", None)
    return str(name) if name else None


class FeatureSettings(NamedTuple):
    """Which features of a network an extractor computes."""

    level: int
    pool: int
    image_size: int


class CnnConfig(ExtractorConfig):
    """Features of a timm network, pooled over boxes or cells of its feature map.

    Defaults depend on the weights. Pretrained weights: the coarsest level, averaged. Random weights: the finest level
    in 3 x 3 parts, because later random layers lose information that the first layer still has.
    """

    model: str = Field("resnet18", description="name of a timm model")
    weights: Annotated[str, PathOrName()] = Field(
        "random", description='"pretrained" (downloaded by timm), "random" (from the seed), or a local safetensors file'
    )
    seed: int = Field(0, ge=0, description="of random weights")
    level: int | None = Field(None, description="index of the network's feature map: 0 is the finest, -1 the coarsest")
    pool: int | None = Field(
        None, ge=1, le=14, description="pool each box or cell into pool x pool parts and concatenate them"
    )
    image_size: int | None = Field(
        None,
        ge=32,
        le=4096,
        description="longer side of the pictures, in pixels; default: 448, or 192 with random weights",
    )
    batch_size: int = Field(16, ge=1, description="pictures per batch")

    def is_random(self) -> bool:
        return self.weights == "random"

    def missing_here(self) -> Mapping[str, str]:
        name = self.base_model()
        problem = name and not_downloaded(name)
        if self.weights not in ("random", "empty", "pretrained") and not Path(self.weights).exists():
            problem = f"'{self.weights}': no such file"
        return {"weights": problem or ""}

    def base_model(self) -> str | None:
        return hub_name(self.model) if self.weights == "pretrained" else None

    def feature_settings(self) -> FeatureSettings:
        """Level, pool and image size, with the defaults for these weights where a setting is None."""
        level, pool, size = (0, 3, 192) if self.weights == "random" else (-1, 1, 448)
        return FeatureSettings(level if self.level is None else self.level, self.pool or pool, self.image_size or size)
