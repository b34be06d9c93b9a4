"""Configs of inputs: texts, stored features of regions and of grids, pictures whose network trains along."""

from typing import Any, Literal

from pydantic import Field, model_validator

import mmgen

from .pictures import ModernVBert, Pictures, PictureTokens


class Text(mmgen.EmbedderConfig):
    """Captions or any other text as the backbone's word embeddings; has no parameters. Several fields (`fields`) are
    joined into one text."""

    type: Literal["text"] = "text"
    hides = "words"

    max_tokens: int = Field(64, ge=0, description="longer texts are cut; with append_mask, 0 leaves only the [MASK]")
    token_type: int = Field(0, ge=0, description="token type of the text; 1 for the second of two texts, as in BERT")
    append_mask: bool = Field(
        False, description="append a [MASK] to the text, whose state gives the answer (VisualBERT and VL-BERT, for VQA)"
    )

    def build(self, backbone):
        from .text import TextEmbedder

        return TextEmbedder(self, backbone)

    def texts(self, example):
        if not self.max_tokens:
            return ()
        values = (example.inputs.get(field, ()) for field in self.fields)
        return tuple(text for value in values for text in ((value,) if isinstance(value, str) else value))

    @model_validator(mode="after")
    def _reads_something(self):
        if not self.max_tokens and not self.append_mask:
            raise ValueError("max_tokens = 0 leaves an empty text; set max_tokens > 0, or append_mask = true")
        return self


class Regions(mmgen.FeaturesConfig):
    """Regions of an image: their features and boxes from an HDF5 store, through one linear layer."""

    type: Literal["regions"] = "regions"
    hides = "regions"

    max_regions: int = Field(36, ge=1, description="most regions per image; a store has them by decreasing confidence")
    box_scale: float = Field(
        1.0,
        gt=0,
        description="factor of a box's numbers, from the picture's middle; beside hundreds of features a larger one, "
        "such as 8, lets places be learned sooner",
    )
    box_words: float = Field(
        0.0,
        ge=0,
        description='add the word embeddings of a region\'s box, "left2 top4 right3 bottom6", times this factor, so '
        "that prompts can point at a region; a small model needs about 4; 0 adds nothing",
    )

    def model_post_init(self, context: Any) -> None:
        if self.box_words and not self.boxes:
            raise ValueError("box_words: needs boxes = true")

    def build(self, backbone):
        from .regions import RegionEmbedder

        return RegionEmbedder(self, backbone)


class Grid(mmgen.FeaturesConfig):
    """Cells of a grid over the image: their features and boxes from an HDF5 store, through one linear layer."""

    type: Literal["grid"] = "grid"

    def build(self, backbone):
        from mmgen.features.embedder import StoredEmbedder

        return StoredEmbedder(self, backbone)


@mmgen.hookimpl
def register_embedders():
    return [Text, Regions, Grid, Pictures, PictureTokens]


@mmgen.hookimpl
def register_backbones():
    return [ModernVBert]
