"""Drawn scenes: a small world of pictures, captions, questions and tasks, so that everything runs with nothing
downloaded."""

from typing import Any, Literal

from pydantic import Field

import mmgen

SPLITS = ("train", "val", "test")


class Sampled(mmgen.DatasetConfig):
    """What all data sets share that are sampled from the world of the scenes."""

    train_size: int = Field(1200, ge=1, le=1_000_000, description="scenes to learn from")
    val_size: int = Field(100, ge=1, le=1_000_000, description="scenes to watch the loss on")
    test_size: int = Field(200, ge=1, le=1_000_000, description="scenes to write for")
    seed: int = Field(0, ge=0, description="the whole data set follows from it; sizes do not change earlier scenes")

    def model_post_init(self, context: Any) -> None:
        for key in ("train_split", "test_split"):
            if getattr(self, key) not in SPLITS:
                raise ValueError(
                    f"{key}: drawn scenes have no split '{getattr(self, key)}'; there are: {', '.join(SPLITS)}"
                )


class Drawn(Sampled):
    """What those share whose scenes are seen."""

    image_size: int = Field(192, ge=64, le=1024, description="side of the square pictures, in pixels")
    min_things: int = Field(5, ge=4, le=7, description="fewest things in a scene")
    max_things: int = Field(6, ge=4, le=7, description="most things in a scene")

    def model_post_init(self, context: Any) -> None:
        if self.min_things > self.max_things:
            raise ValueError(f"min_things: must not be over max_things ({self.max_things}), and is {self.min_things}")
        super().model_post_init(context)


class Scenes(Drawn):
    """Scenes of a few things each, in the spirit of VQA 1.0's abstract scenes; made from the seed alone.

    All captions of a scene speak of the same two groups of things; the rest of the scene is never captioned. Questions
    are asked of every group alike, so that about half of them are about something that no caption mentions.
    """

    type: Literal["scenes"] = "scenes"
    captions: int = Field(5, ge=1, le=10, description="captions a scene; the first is the one used in evaluation")
    questions: int = Field(4, ge=3, le=6, description="questions a scene")

    def build(self):
        from .dataset import DrawnScenes

        return DrawnScenes(self)


class Proposals(Drawn):
    """What data sets share whose examples ask for a box."""

    proposals: int = Field(
        36,
        ge=0,
        le=100,
        description="boxes of a picture, as if a detector had found them: two near each box that may be asked for, and "
        "others anywhere; with 0 the picture's boxes are the things' own",
    )


class SceneStories(Sampled):
    """Stories about scenes that nobody sees, in the words of captions and questions: texts to read alone."""

    type: Literal["scene_stories"] = "scene_stories"
    train_size: int = Field(1200, ge=1, le=1_000_000, description="stories to learn from")
    val_size: int = Field(100, ge=1, le=1_000_000, description="stories to watch the loss on")
    test_size: int = Field(200, ge=1, le=1_000_000, description="stories to evaluate on")
    sentences: int = Field(6, ge=1, le=12, description="sentences a story, of about eight words")

    def build(self):
        from .stories import Stories

        return Stories(self)


class Discovery(mmgen.MetricConfig):
    """Relevance and discovery of questions about drawn scenes, in percent, from the words alone.

    A question is relevant when it names something and everything it names is in the scene, as it is said to be there;
    it discovers when it is relevant and names a thing that the first caption does not mention.
    """

    type: Literal["discovery"] = "discovery"

    def build(self):
        from .metric import DiscoveryMetric

        return DiscoveryMetric()


@mmgen.hookimpl
def register_datasets():
    return [Scenes, SceneStories]


@mmgen.hookimpl
def register_metrics():
    return [Discovery]
