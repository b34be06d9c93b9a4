"""Backbones that see: ModernVBERT and UltraVBERT. A vision tower turns pictures into tokens of their text encoder."""

from pathlib import Path
from typing import Any, ClassVar, Literal

from mmgen_encoders import ATTENTION, SEEING, Encoder
from pydantic import Field

from mmgen.errors import DataError

AROUND, IMAGE, WHOLE = "<fake_token_around_image>", "<image>", "<global-img>"
TILE = "<row_{row}_col_{column}>"
TILES = 6  # rows and columns of tiles that have tokens


class SeeingEncoder(Encoder):
    """Base of encoders that see. Without `weights`, the vision tower is built with the sizes below too."""

    attention: ClassVar[str | None] = ATTENTION
    special_tokens: ClassVar[tuple[str, ...]] = (
        *(AROUND, WHOLE, IMAGE),
        *(TILE.format(row=row, column=column) for row in range(1, TILES + 1) for column in range(1, TILES + 1)),
    )
    dropouts: ClassVar[tuple[str, ...]] = (*Encoder.dropouts, "embedding_dropout", "mlp_dropout")
    since: ClassVar[str]  # the version of transformers that has it
    image_processor: ClassVar[str]  # transformers' class, for an encoder without weights

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
        if self.vision_size % self.vision_heads:
            raise ValueError(
                f"vision_heads: vision_size ({self.vision_size}) must be a multiple of vision_heads "
                f"({self.vision_heads})"
            )

    def build(self, texts=None, folder: Path | None = None):
        self._check_version()
        from .vision import load_processor

        backbone = super().build(texts, folder)
        backbone.take_processor(load_processor(self, folder), self.weights if folder is None else str(folder))
        return backbone

    def check_weights(self) -> None:
        self._check_version()
        super().check_weights()

    def _check_version(self) -> None:
        import transformers
        from transformers.models.auto import CONFIG_MAPPING

        if self.transformers_name not in CONFIG_MAPPING:
            raise DataError(
                f"backbone '{self.type}' needs transformers {self.since} or newer, but {transformers.__version__} is "
                f"installed; run: pip install 'transformers>={self.since}'"
            )

    def where_to_give(self, family: str) -> str:
        return f'set backbone.type = "{family}"' if family in SEEING else super().where_to_give(family)

    def check_backbone(self, backbone) -> None:
        from mmgen_encoders.any_encoder import difference_from_source

        if reason := difference_from_source(backbone):
            raise DataError(f"mmgen cannot use the encoder '{self.type}': {reason}; choose another encoder")

    def backbone_class(self):
        from .vision import SeeingBackbone

        return SeeingBackbone

    def sizes(self) -> dict[str, Any]:
        from transformers import SiglipVisionConfig

        vision = SiglipVisionConfig(
            image_size=self.image_size,
            patch_size=self.patch_size,
            num_hidden_layers=self.vision_layers,
            hidden_size=self.vision_size,
            num_attention_heads=self.vision_heads,
            intermediate_size=4 * self.vision_size,
            vision_use_head=False,
        )
        return {
            "vision_config": vision,
            "pixel_shuffle_factor": self.pixel_shuffle_factor,
            "tie_word_embeddings": True,
            "initializer_range": self.hidden_size**-0.5,
        }


class ModernVBert(SeeingEncoder):
    """ModernVBERT (Teiletche et al., 2025): SigLIP's vision tower in front of ModernBERT."""

    type: Literal["modernvbert"] = "modernvbert"
    since: ClassVar[str] = "5.9"
    image_processor: ClassVar[str] = "Idefics3ImageProcessor"


class UltraVBert(SeeingEncoder):
    """UltraVBERT: SigLIP's vision tower in front of UltraBERT. Needs transformers 5.21."""

    type: Literal["ultravbert"] = "ultravbert"
    since: ClassVar[str] = "5.21"
    image_processor: ClassVar[str] = "UltraVBertImageProcessor"
