"""Configs of pictures as an input: a network in the model computes their features, or the encoder itself sees them.

The network computes features of regions or cells, and can train along. An encoder that sees is ModernVBERT.
"""

from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from mmgen_encoders import Encoder
from mmgen_vision.cnn_config import CnnConfig
from pydantic import Field, SerializeAsAny, model_validator

import mmgen

AROUND, IMAGE, WHOLE = "<fake_token_around_image>", "<image>", "<global-img>"
TILE = "<row_{row}_col_{column}>"
TILES = 6  # rows and columns of tiles that have tokens


class Pictures(mmgen.EmbedderConfig):
    """Pictures through a network that trains with the model, and then through an input of stored features. With the
    whole network frozen (`training.freeze`), it equals this input with features that the extractor stored.

    As in VL-BERT's original code, the normalisation layers of the network do not train."""

    type: Literal["picture_network"] = "picture_network"
    takes = "picture"

    embedder: SerializeAsAny[mmgen.EmbedderConfig] = Field(
        description='the input of features that gets the features of the network: "regions", "grid" or another'
    )
    extractor: SerializeAsAny[mmgen.ExtractorConfig] = Field(
        description='the network, and what its maps are pooled over: "roi" or "timm_grid"'
    )
    boxes: Path | None = Field(
        None,
        description="feature store whose boxes, region names and classes the pictures get, instead of those of the "
        "data set",
    )
    gradient_checkpointing: bool = Field(
        False, description="recompute the network's activations in the backward pass: less memory, more time"
    )
    width: int | None = Field(None, ge=1, le=1 << 20, description="width of the features; a run saves it")
    classes: tuple[str, ...] | None = Field(None, description="class names of regions; a run saves them")

    @model_validator(mode="after")
    def _check(self) -> Self:
        inner = self.embedder
        if not isinstance(inner, mmgen.FeaturesConfig):
            raise ValueError(f'embedder: \'{inner.type}\' is not an input of features; use "regions" or "grid"')
        for key, value in (("features", inner.features), ("extractor", inner.extractor)):
            if value is not None:
                raise ValueError(f"embedder: '{key}' must not be set, because the network computes the features")
        if not isinstance(self.extractor, CnnConfig):
            raise ValueError(
                f"extractor: the network of '{self.extractor.type}' cannot train with a model; use \"roi\" or "
                '"timm_grid"'
            )
        if getattr(self.extractor, "detector", None) is not None:
            raise ValueError(
                "extractor: 'detector' must not be set; extract its boxes once with `mmgen features extract`, and set "
                "boxes to the store"
            )
        return self

    @property
    def hides(self) -> Literal["words", "regions"] | None:  # type: ignore[override]
        return self.embedder.hides

    def build(self, backbone):
        from .picture_network import PictureEmbedder

        return PictureEmbedder(self, backbone)

    def inner(self, width: int) -> mmgen.FeaturesConfig:
        """The config of the input of features of a width, which reads the same field."""
        inner = self.embedder.model_copy(update={"fields": self.fields, "width": width, "classes": self.classes})
        assert isinstance(inner, mmgen.FeaturesConfig)  # checked above
        return inner

    def network(self) -> CnnConfig:
        """The config of the extractor. A network whose weights a run has saved is built without any."""
        config = self.extractor
        assert isinstance(config, CnnConfig)  # checked above
        if self.width is None:
            return config
        return config.model_copy(update={**config.feature_settings()._asdict(), "weights": "empty"})

    def optional_fields(self) -> tuple[str, ...]:
        return self.embedder.optional_fields()


class PictureTokens(mmgen.EmbedderConfig):
    """Pictures as an encoder that sees was pretrained with them: cut into tiles by its own processor, through its
    vision tower and connector, between the tokens that it expects around them. Has no parameters of its own; the
    tower's and the connector's are the backbone's."""

    type: Literal["picture_tokens"] = "picture_tokens"
    takes = "picture"

    split: bool | None = Field(
        None, description="cut large pictures into tiles; by default as the encoder's processor says"
    )
    longest_edge: int | None = Field(
        None,
        ge=8,
        le=1 << 14,
        description="resize pictures to this longest side in pixels before they are cut; by default as the encoder's "
        "processor says",
    )

    def build(self, backbone):
        from .picture_tokens import TokenEmbedder

        return TokenEmbedder(self, backbone)

    def backbone_problem(self, backbone: mmgen.BackboneConfig) -> str:
        if isinstance(backbone, ModernVBert):
            return ""
        return (
            f"'{self.type}' needs an encoder that sees, but the backbone '{backbone.type}' sees no pictures; set "
            'backbone.type = "modernvbert", or use an input of features'
        )


class ModernVBert(Encoder):
    """ModernVBERT (Teiletche et al., 2025): SigLIP's vision tower in front of ModernBERT. Without `weights`, the vision
    tower is built with the sizes below too."""

    type: Literal["modernvbert"] = "modernvbert"
    is_tried: ClassVar[bool] = True
    tile: ClassVar[str] = TILE
    special_tokens: ClassVar[tuple[str, ...]] = (
        *(AROUND, WHOLE, IMAGE),
        *(TILE.format(row=row, column=column) for row in range(1, TILES + 1) for column in range(1, TILES + 1)),
    )

    image_size: int = Field(
        64, ge=8, le=4096, description="side in pixels of the square tiles that the vision tower sees, without weights"
    )
    patch_size: int = Field(8, ge=2, le=256, description="side in pixels of its patches, without weights")
    pixel_shuffle_factor: int = Field(
        2, ge=1, le=32, description="side of the square of patches that become one token, without weights"
    )
    vision_layers: int = Field(2, ge=1, le=1000, description="layers of the vision tower, without weights")
    vision_size: int = Field(128, ge=8, le=100_000, description="width of its states, without weights")
    vision_heads: int = Field(4, ge=1, description="its attention heads, without weights")

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        side = self.patch_size * self.pixel_shuffle_factor
        if self.image_size % side:
            raise ValueError(
                f"image_size: {self.image_size} must be a multiple of patch_size x pixel_shuffle_factor ({side})"
            )

    def build(self, texts=None, folder: Path | None = None):
        from .seeing import load_processor

        backbone = super().build(texts, folder)
        backbone.processor = load_processor(self, folder)
        return backbone

    def backbone_class(self):
        from .seeing import SeeingBackbone

        return SeeingBackbone

    def sizes(self) -> dict[str, Any]:
        from .seeing import sizes

        return sizes(self)
