"""Pictures as an input: a network inside the model computes the features of regions or cells, and can train along; or
the encoder itself sees them, as ModernVBERT and UltraVBERT do."""

from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, SerializeAsAny, model_validator

import mmgen
from mmgen.features.cnn_config import CnnConfig

from .encoders import ModernVBert, UltraVBert


class PictureInput(mmgen.EmbedderConfig):
    """Base of inputs that read pictures."""

    takes_picture: ClassVar[bool] = True

    images: Path | None = Field(None, description="folder of images, instead of the pictures of the data set")
    mirror: bool = Field(
        False, description="in training, mirror half of the pictures and their boxes, drawn for every visit"
    )
    mirror_texts: tuple[str, ...] = Field(
        (),
        description='fields of examples in which "left" and "right" are exchanged where the picture is mirrored; '
        '"targets" are the texts to write',
    )

    @model_validator(mode="after")
    def _check_mirror(self) -> Self:
        if self.mirror_texts and not self.mirror:
            raise ValueError("mirror_texts: has no effect without mirror = true")
        return self


class Pictures(PictureInput):
    """Pictures through a network that trains with the model, and then through an input of stored features. With the
    whole network frozen, it equals this input with features that the extractor stored.

    Mirrored pictures, and which layers train, follow VL-BERT (section 3.2) and its original code, which freezes the
    first stages and all normalisation layers of the network."""

    type: Literal["picture_network"] = "picture_network"

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
    frozen_level: int | Literal["all"] | None = Field(
        None,
        description="freeze the network up to this level of its feature maps, counted as `level` of the extractor; "
        '"all": train nothing of it; by default train all',
    )
    train_norms: bool = Field(
        False,
        description="train the weights and biases of normalisation layers too; the statistics of batch norms stay",
    )
    gradient_checkpointing: bool = Field(
        False, description="recompute the network's activations in the backward pass: less memory, more time"
    )
    width: int | None = Field(None, ge=1, le=1 << 20, description="width of the features; a run saves it")
    classes: tuple[str, ...] | None = Field(None, description="class names of regions; a run saves them")
    license: str | None = Field(None, description="licence of the network's weights, where known; a run saves it")

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
        if text := next((text for text in self.mirror_texts if f"{text}_mentions" in inner.optional_fields()), None):
            raise ValueError(f"mirror_texts: '{text}' has mentions, whose places would change; leave it out")
        return self

    @property
    def hides(self) -> Literal["words", "regions"] | None:  # type: ignore[override]
        return self.embedder.hides

    def build(self, backbone):
        from .embedder import PictureEmbedder

        return PictureEmbedder(self, backbone)

    def inner(self) -> mmgen.FeaturesConfig:
        """The config of the input of features, which reads the same field."""
        changes = {"fields": self.fields, "width": self.width, "classes": self.classes}
        inner = self.embedder.model_copy(update=changes)
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

    def from_json(self, field: str, value: Any) -> Any:
        return self.embedder.from_json(field, value)


class PictureTokens(PictureInput):
    """Pictures as an encoder that sees was pretrained with them: cut into tiles by its own processor, through its
    vision tower and connector, between the tokens that it expects around them. Has no parameters of its own; the
    tower's and the connector's are the backbone's."""

    type: Literal["picture_tokens"] = "picture_tokens"

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
        from .tokens import TokenEmbedder

        return TokenEmbedder(self, backbone)


@mmgen.hookimpl
def register_embedders():
    return [Pictures, PictureTokens]


@mmgen.hookimpl
def register_backbones():
    return [ModernVBert, UltraVBert]
