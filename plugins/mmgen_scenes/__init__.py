"""Drawn scenes: a small world of pictures, captions, questions and tasks, so that everything runs with nothing
downloaded."""

from typing import Any, ClassVar, Literal

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
        for key in ("train", "evaluate"):
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


class SceneAnswers(Drawn):
    """Questions about drawn scenes that have one answer, and what ten people say: VQA, drawn.

    Every form of question is balanced: who has not seen the picture and says each form's most common answer is right
    35 times in 100.
    """

    type: Literal["scene_answers"] = "scene_answers"
    labels: ClassVar[tuple[str, ...]] = ("answers",)
    questions: int = Field(4, ge=1, le=6, description="questions a scene, each an example")
    learn_from: Literal["most_common", "all"] = Field(
        "most_common", description="targets outside of the split to evaluate: the most common answer, or all ten"
    )

    def build(self):
        from .tasks import DrawnAnswers

        return DrawnAnswers(self)


class Proposals(Drawn):
    """What data sets share whose examples ask for a box."""

    proposals: int = Field(
        36,
        ge=0,
        le=100,
        description="boxes of a picture, as if a detector had found them: two near each box that may be asked for, and "
        "others anywhere; with 0 the picture's boxes are the things' own",
    )


class SceneExpressions(Proposals):
    """Expressions that fit one thing of a drawn scene, which has others of its kind: RefCOCO+, drawn.

    An expression is as short as it can be, and never says left or right. A box by lot is right 18 times in 100 among
    the things' own, and 5 times among 36 proposals, which have a right one for 98 things in 100.
    """

    type: Literal["scene_expressions"] = "scene_expressions"
    labels: ClassVar[tuple[str, ...]] = ("box",)
    proposals: int = Field(0, ge=0, le=100, description=Proposals.model_fields["proposals"].description)
    unlike: int = Field(3, ge=2, le=4, description="things of one kind, not all alike, that a scene has")
    expressions: int = Field(2, ge=1, le=4, description="expressions a scene at most, each an example")

    def build(self):
        from .tasks import DrawnExpressions

        return DrawnExpressions(self)


class ScenePairs(Drawn):
    """Statements about two drawn scenes side by side, true or false: NLVR2, drawn.

    A set has four pairs of scenes. Each statement is true of two of them and false of the others, so that its words
    alone say nothing: chance is 50 in 100, and for all four of a statement 1 in 16.
    """

    type: Literal["scene_pairs"] = "scene_pairs"
    labels: ClassVar[tuple[str, ...]] = ("truth",)
    train_size: int = Field(300, ge=1, le=100_000, description="sets of four pairs, eight scenes each, to learn from")
    val_size: int = Field(10, ge=1, le=100_000, description="sets to watch the loss on")
    test_size: int = Field(40, ge=1, le=100_000, description="sets to predict for")
    statements: int = Field(2, ge=1, le=3, description="statements a set, each with its four pairs four examples")

    def build(self):
        from .tasks import DrawnPairs

        return DrawnPairs(self)


class ScenePhrases(Proposals):
    """Where the things are that captions of drawn scenes name: Flickr30K Entities, drawn.

    What is named several times over has the box around all of it. Of 36 proposals 5 in 100 are right; 98 phrases in 100
    have a right one.
    """

    type: Literal["scene_phrases"] = "scene_phrases"
    labels: ClassVar[tuple[str, ...]] = ("phrases",)
    captions: int = Field(2, ge=1, le=10, description="captions a scene: the first of those that `scenes` has")

    def build(self):
        from .tasks import DrawnPhrases

        return DrawnPhrases(self)


class SceneChoices(Drawn):
    """Questions about drawn scenes with four answers, and four rationales for the right one: VCR, drawn.

    Wrong ones fit the scene's things. Who has learnt from the words of 4,000 scenes alone (naive Bayes) is right 30
    times in 100 about answers and 25 times about rationales; chance is 25.
    """

    type: Literal["scene_choices"] = "scene_choices"
    labels: ClassVar[tuple[str, ...]] = ("choices", "choice_mentions", "choice", "objects")
    min_things: int = Field(6, ge=6, le=7, description="fewest things in a scene")
    max_things: int = Field(7, ge=6, le=7, description="most things in a scene")
    items: int = Field(2, ge=1, le=2, description="questions a scene")
    asks: Literal["answer", "rationale", "both", "every"] = Field(
        "both",
        description="answers; rationales of the right answer; both; or, as VCR's leaderboard wants it, rationales of "
        "each of the four answers too",
    )
    tags: Literal["kinds", "names"] = Field(
        "kinds",
        description="things are called by their kinds; or, as people are in VCR, by names that say nothing, so that "
        "only the mentions tell which thing is meant",
    )

    def build(self):
        from .tasks import DrawnChoices

        return DrawnChoices(self)


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
    return [Scenes, SceneAnswers, SceneExpressions, ScenePairs, ScenePhrases, SceneChoices, SceneStories]


@mmgen.hookimpl
def register_metrics():
    return [Discovery]
