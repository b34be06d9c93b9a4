"""The keys that all data sets about drawn scenes have."""

from typing import Any

from pydantic import Field

import mmgen

SPLITS = ("train", "val", "test")
STATEMENTS = (  # forms of statements about two pictures
    "side",
    "side color",
    "both",
    "both color",
    "neither",
    "one",
    "one color",
    "one with",
    "two",
    "total",
    "more",
    "as many",
    "each side",
    "two colors",
)
QUESTIONS = ("looking", "going", "next to", "color", "side")  # forms of questions with choices


class Drawn(mmgen.DatasetConfig):
    """Keys of all data sets about scenes that are sampled from the world."""

    only_about = "drawn scenes"

    train_size: int = Field(1200, ge=1, le=1_000_000, description="training scenes")
    val_size: int = Field(100, ge=1, le=1_000_000, description="validation scenes")
    test_size: int = Field(200, ge=1, le=1_000_000, description="test scenes")
    seed: int = Field(0, ge=0, description="the seed of the data set; sizes do not change earlier scenes")
    image_size: int = Field(192, ge=64, le=1024, description="side of the square pictures, in pixels")
    min_things: int = Field(5, ge=4, le=7, description="fewest things in a scene")
    max_things: int = Field(6, ge=4, le=7, description="most things in a scene")

    @property
    def things(self) -> tuple[int, int]:
        """The fewest and the most things in a scene."""
        return self.min_things, self.max_things

    def model_post_init(self, context: Any) -> None:
        if self.min_things > self.max_things:
            raise ValueError(f"min_things: must be at most max_things ({self.max_things}), not {self.min_things}")
        for key in ("train_split", "test_split"):
            if getattr(self, key) not in SPLITS:
                raise ValueError(
                    f"{key}: drawn scenes have no split '{getattr(self, key)}'; choose from: {', '.join(SPLITS)}"
                )


class Proposals(Drawn):
    """Keys of the data sets whose examples ask for a box."""

    proposals: int = Field(
        36,
        ge=0,
        le=100,
        description="boxes per picture, as a detector would propose them: two near each box that may be right, and the "
        "rest at random places; with 0 the picture's boxes are those of the things",
    )
